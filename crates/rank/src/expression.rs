//! Scores: arithmetic expressions over the features of a post, parsed once to the operations of a stack machine.
//!
//! **Invariant:** evaluation is total. Every operation has a finite result between -[`VALUE_MAX`] and [`VALUE_MAX`]:
//! greater numbers are cut there, and a division by zero and a logarithm of a number that is not positive are 0.
//! **Invariant:** an expression has at most [`OPS_MAX`] operations and nests at most [`DEPTH_MAX`] deep, so its cost
//! and its stack are known when it is parsed.

use thiserror::Error;

/// Maximum length of an expression, in bytes.
pub const TEXT_BYTES_MAX: usize = 1_024;
/// Maximum number of operations of an expression, including its numbers and features.
pub const OPS_MAX: usize = 128;
/// Maximum nesting of parentheses, functions and signs.
pub const DEPTH_MAX: usize = 16;
/// Maximum number of values on the stack: each level has at most three pending operands.
const STACK_MAX: usize = 4 * DEPTH_MAX;
/// Number of posts for which an operation is done at once, so that it is decoded once for all of them.
const LANES: usize = 16;
/// Maximum absolute value of a result.
const VALUE_MAX: f64 = 1e18;

/// Declares the features with their names and descriptions.
macro_rules! features {
    ($($feature:ident $name:literal $text:literal,)*) => {
        /// A number about a post, for a viewer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Feature {
            $(#[doc = $text] $feature,)*
        }

        impl Feature {
            /// All features, in the order of the enum.
            pub const ALL: [Self; FEATURES] = [$(Self::$feature),*];

            /// Name of the feature in expressions and explanations.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$feature => $name),* }
            }
        }

        /// Number of features.
        pub const FEATURES: usize = [$($name),*].len();
    };
}

features! {
    Age "age" "Age of the post in seconds.",
    Likes "likes" "Number of favourites.",
    Boosts "boosts" "Number of boosts.",
    Replies "replies" "Number of replies, at most 100.",
    Followed "followed" "1 if the viewer follows the author, else 0.",
    Affinity "affinity" "Share of the viewer's last reactions that went to the author, from 0 to 1.",
    LikedByFollowed "liked_by_followed" "Number of users followed by the viewer who favourited or boosted the post.",
    Tags "tags" "Number of hashtags of the post that the viewer follows or uses.",
    Group "group" "1 if the post is popular in an interest group of the viewer, else 0.",
    Language "language" "1 if the post is in a language that the viewer uses, else 0.",
    NewAuthor "new_author" "1 if the author has few posts, else 0.",
    Less "less" "Number of hashtags and authors that the post shares with posts of which the viewer wants less.",
    Seen "seen" "Number of times that the viewer has seen the post.",
    Random "random" "Random number from 0 to 1, constant for a viewer and a post within an hour.",
}

/// Values of all features of a post.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Features([f64; FEATURES]);

impl Features {
    /// Value of a feature.
    #[must_use]
    pub fn of(&self, feature: Feature) -> f64 {
        self.0.get(feature as usize).copied().unwrap_or_default()
    }

    /// Sets a feature.
    pub fn set(&mut self, feature: Feature, value: f64) {
        if let Some(of) = self.0.get_mut(feature as usize) {
            *of = finite(value);
        }
    }

    /// Adds to a feature.
    pub fn add(&mut self, feature: Feature, value: f64) {
        self.set(feature, self.of(feature) + value);
    }
}

/// Operation of the stack machine.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Number(f64),
    Feature(Feature),
    Negate,
    Add,
    Subtract,
    Multiply,
    Divide,
    Min,
    Max,
    Log,
    Exp,
    Decay,
}

/// An error in an expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem} at character {at} of the expression")]
pub struct ExpressionError {
    /// Position of the error: the number of characters before it plus 1.
    pub at: usize,
    /// The problem, as a clause.
    pub problem: String,
}

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: Box<str>,
    ops: Box<[Op]>,
}

impl Expression {
    /// Parses an expression of numbers (`6h` is 21,600: the units are `s`, `m`, `h` and `d`), features, `+ - * /`,
    /// parentheses, and the functions `min(a, b)`, `max(a, b)`, `log(x)`, `exp(x)` and `decay(x, half_life)`.
    ///
    /// # Errors
    /// [`ExpressionError`], also if the expression is too long or nests too deep.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > TEXT_BYTES_MAX {
            let problem = format!("an expression is longer than {TEXT_BYTES_MAX} bytes");
            return Err(ExpressionError { at: TEXT_BYTES_MAX, problem });
        }
        let mut parser = Parser { text, at: 0, depth: 0, ops: Vec::new() };
        parser.sum()?;
        match parser.peek() {
            None => Ok(Self { text: text.into(), ops: parser.ops.into() }),
            Some(found) => Err(parser.error(format!("unexpected `{found}`"))),
        }
    }

    /// Text of the expression.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Number of operations: the cost of an evaluation.
    #[must_use]
    pub fn cost(&self) -> usize {
        self.ops.len()
    }

    /// Evaluates the expression for each of some posts.
    #[must_use]
    pub fn values<'f>(&self, posts: impl IntoIterator<Item = &'f Features>) -> Vec<f64> {
        let posts: Vec<_> = posts.into_iter().collect();
        let mut stack = Stack(Vec::with_capacity(STACK_MAX));
        let mut values = Vec::with_capacity(posts.len());
        for posts in posts.chunks(LANES) {
            let of = self.evaluate(posts, &mut stack);
            values.extend(of.into_iter().take(posts.len()));
        }
        values
    }

    fn evaluate(&self, posts: &[&Features], stack: &mut Stack) -> [f64; LANES] {
        for op in &self.ops {
            match *op {
                Op::Number(number) => stack.0.push([finite(number); LANES]),
                Op::Feature(feature) => stack.0.push(std::array::from_fn(|lane| {
                    posts.get(lane).map_or(0.0, |features| features.of(feature))
                })),
                Op::Negate => stack.unary(|a| -a),
                Op::Log => stack.unary(log),
                Op::Exp => stack.unary(f64::exp),
                Op::Add => stack.binary(|a, b| a + b),
                Op::Subtract => stack.binary(|a, b| a - b),
                Op::Multiply => stack.binary(|a, b| a * b),
                Op::Divide => stack.binary(divide),
                Op::Min => stack.binary(f64::min),
                Op::Max => stack.binary(f64::max),
                Op::Decay => stack.binary(decay),
            }
        }
        stack.0.pop().unwrap_or_default()
    }
}

/// Values that later operations need, of each post.
struct Stack(Vec<[f64; LANES]>);

impl Stack {
    /// Replaces the last values.
    fn unary(&mut self, op: impl Fn(f64) -> f64) {
        for a in self.0.last_mut().into_iter().flatten() {
            *a = finite(op(*a));
        }
    }

    /// Replaces the last two values of each post by one.
    fn binary(&mut self, op: impl Fn(f64, f64) -> f64) {
        let right = self.0.pop().unwrap_or_default();
        for (a, b) in self.0.last_mut().into_iter().flatten().zip(right) {
            *a = finite(op(*a, b));
        }
    }
}

/// Cuts a result; 0 if it is not a number.
fn finite(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(-VALUE_MAX, VALUE_MAX) }
}

fn divide(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { a / b }
}

/// Natural logarithm; 0 for numbers that are not positive.
fn log(x: f64) -> f64 {
    if x > 0.0 { x.ln() } else { 0.0 }
}

/// Halves for each `half_life` in `x`; 1 if `x` is not positive, else 0 if the half-life is not positive.
fn decay(x: f64, half_life: f64) -> f64 {
    match () {
        () if x <= 0.0 => 1.0,
        () if half_life <= 0.0 => 0.0,
        () => (-x / half_life).exp2(),
    }
}

struct Parser<'t> {
    text: &'t str,
    /// Number of bytes parsed.
    at: usize,
    depth: usize,
    ops: Vec<Op>,
}

impl Parser<'_> {
    fn error(&self, problem: String) -> ExpressionError {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        ExpressionError { at: before.chars().count() + 1, problem }
    }

    /// Next character that is not a space.
    fn peek(&mut self) -> Option<char> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed.chars().next()
    }

    /// Takes a character if it is next.
    fn takes(&mut self, char: char) -> bool {
        let is_next = self.peek() == Some(char);
        if is_next {
            self.at += char.len_utf8();
        }
        is_next
    }

    fn expect(&mut self, char: char) -> Result<(), ExpressionError> {
        if self.takes(char) {
            return Ok(());
        }
        let found = self.peek().map_or("the end".to_owned(), |found| format!("`{found}`"));
        Err(self.error(format!("expected `{char}`, found {found}")))
    }

    fn push(&mut self, op: Op) -> Result<(), ExpressionError> {
        if self.ops.len() >= OPS_MAX {
            return Err(self.error(format!("more than {OPS_MAX} operations")));
        }
        self.ops.push(op);
        Ok(())
    }

    fn sum(&mut self) -> Result<(), ExpressionError> {
        self.product()?;
        loop {
            let op = match self.peek() {
                Some('+') => Op::Add,
                Some('-') => Op::Subtract,
                _ => return Ok(()),
            };
            self.at += 1;
            self.product()?;
            self.push(op)?;
        }
    }

    fn product(&mut self) -> Result<(), ExpressionError> {
        self.factor()?;
        loop {
            let op = match self.peek() {
                Some('*') => Op::Multiply,
                Some('/') => Op::Divide,
                _ => return Ok(()),
            };
            self.at += 1;
            self.factor()?;
            self.push(op)?;
        }
    }

    fn factor(&mut self) -> Result<(), ExpressionError> {
        if self.depth >= DEPTH_MAX {
            return Err(self.error(format!("nested more than {DEPTH_MAX} deep")));
        }
        self.depth += 1;
        match self.peek() {
            Some('-') => {
                self.at += 1;
                self.factor()?;
                self.push(Op::Negate)?;
            }
            Some('(') => {
                self.at += 1;
                self.sum()?;
                self.expect(')')?;
            }
            Some(digit) if digit.is_ascii_digit() => self.number()?,
            Some(letter) if letter.is_ascii_alphabetic() => self.name()?,
            Some(other) => return Err(self.error(format!("unexpected `{other}`"))),
            None => return Err(self.error("expected a number or a name".to_owned())),
        }
        self.depth -= 1;
        Ok(())
    }

    /// Takes the longest prefix whose characters are accepted.
    fn take_while(&mut self, accepts: impl Fn(char) -> bool) -> &str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let len = rest.find(|char| !accepts(char)).unwrap_or(rest.len());
        self.at += len;
        rest.get(..len).unwrap_or_default()
    }

    fn number(&mut self) -> Result<(), ExpressionError> {
        let start = self.at;
        let digits = self.take_while(|char| char.is_ascii_digit() || char == '.').to_owned();
        let unit = self.take_while(|char| char.is_ascii_alphanumeric() || char == '_');
        let seconds = match unit {
            "" | "s" => Some(1.0),
            "m" => Some(60.0),
            "h" => Some(3_600.0),
            "d" => Some(86_400.0),
            _ => None,
        };
        match (digits.parse::<f64>(), seconds) {
            (Ok(number), Some(seconds)) => self.push(Op::Number(finite(number * seconds))),
            _ => {
                self.at = start;
                Err(self.error("expected a number such as 2, 0.5 or 6h".to_owned()))
            }
        }
    }

    fn name(&mut self) -> Result<(), ExpressionError> {
        let start = self.at;
        let name = self.take_while(|char| char.is_ascii_alphanumeric() || char == '_').to_owned();
        let (op, arguments) = match name.as_str() {
            "min" => (Op::Min, 2),
            "max" => (Op::Max, 2),
            "log" => (Op::Log, 1),
            "exp" => (Op::Exp, 1),
            "decay" => (Op::Decay, 2),
            _ => {
                let feature = Feature::ALL.into_iter().find(|feature| feature.name() == name);
                let Some(feature) = feature else {
                    self.at = start;
                    let names = Feature::ALL.map(Feature::name).join(", ");
                    return Err(self.error(format!("unknown name `{name}` (features: {names})")));
                };
                return self.push(Op::Feature(feature));
            }
        };
        self.expect('(')?;
        for argument in 0..arguments {
            if argument > 0 {
                self.expect(',')?;
            }
            self.sum()?;
        }
        self.expect(')')?;
        self.push(op)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str) -> f64 {
        let mut features = Features::default();
        features.set(Feature::Age, 7_200.0);
        features.set(Feature::Likes, 3.0);
        Expression::parse(text).unwrap().values([&features])[0]
    }

    #[test]
    fn expressions_have_the_usual_meaning() {
        for (text, expect) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("8 - 2 - 1", 5.0),
            ("8 / 2 / 2", 2.0),
            ("-likes + 1", -2.0),
            ("2 * -likes", -6.0),
            ("min(likes, 2) + max(likes, 5)", 7.0),
            ("log(exp(2))", 2.0),
            ("decay(age, 1h)", 0.25),
            ("1.5m + 1d + 2s", 86_492.0),
        ] {
            assert!((value(text) - expect).abs() < 1e-9, "{text} is {}", value(text));
        }
    }

    #[test]
    fn every_operation_has_a_finite_result() {
        for (text, expect) in [
            ("1 / 0", 0.0),
            ("1 / (likes - 3)", 0.0),
            ("log(0) + log(-1)", 0.0),
            ("exp(100000)", 1e18),
            ("-exp(100000) * 10", -1e18),
            ("exp(9999) - exp(9999)", 0.0),
            ("decay(-5, 1h) + decay(5, 0) + decay(5, -1)", 1.0),
            ("decay(exp(99), 0.0000001)", 0.0),
        ] {
            assert!((value(text) - expect).abs() < 1e-9, "{text} is {}", value(text));
        }
        let mut features = Features::default();
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            features.set(Feature::Likes, odd);
            assert!(features.of(Feature::Likes).is_finite());
        }
    }

    #[test]
    fn an_error_has_its_place() {
        let deep = format!("{}1{}", "(".repeat(DEPTH_MAX), ")".repeat(DEPTH_MAX));
        let long = "1+".repeat(OPS_MAX / 2) + "1";
        for (text, at, problem) in [
            ("", 1, "expected a number or a name"),
            ("1 +", 4, "expected a number or a name"),
            ("1 + ä", 5, "unexpected `ä`"),
            ("likes ? 2", 7, "unexpected `?`"),
            ("1 + lieks", 5, "unknown name `lieks`"),
            ("min(1)", 6, "expected `,`, found `)`"),
            ("(1 + 2", 7, "expected `)`, found the end"),
            ("6w", 1, "expected a number such as"),
            ("1.2.3", 1, "expected a number such as"),
            (&deep, DEPTH_MAX + 1, "nested more than 16 deep"),
            (&long, 2 * (OPS_MAX / 2) + 2, "more than 128 operations"),
            (&" ".repeat(TEXT_BYTES_MAX + 1), TEXT_BYTES_MAX, "longer than 1024 bytes"),
        ] {
            let error = Expression::parse(text).unwrap_err();
            assert!(error.problem.contains(problem), "{text:?}: {error}");
            assert_eq!(error.at, at, "{text:?}: {error}");
        }
    }

    /// Expression as a tree, evaluated directly.
    #[derive(Clone, Debug)]
    enum Tree {
        Number(f64),
        Feature(Feature),
        Negate(Box<Tree>),
        Binary(char, Box<(Tree, Tree)>),
        Call(&'static str, Vec<Tree>),
    }

    fn tree() -> impl Strategy<Value = Tree> {
        let leaf = prop_oneof![
            (0u32..2_000).prop_map(|n| Tree::Number(f64::from(n) / 8.0)),
            (0..FEATURES).prop_map(|at| Tree::Feature(Feature::ALL[at])),
        ];
        leaf.prop_recursive(4, 30, 2, |inner| {
            let two = (inner.clone(), inner.clone());
            let call = prop_oneof![Just("min"), Just("max"), Just("decay")];
            let one = prop_oneof![Just("log"), Just("exp")];
            prop_oneof![
                inner.clone().prop_map(|tree| Tree::Negate(tree.into())),
                (prop_oneof![Just('+'), Just('-'), Just('*'), Just('/')], two.clone())
                    .prop_map(|(op, two)| Tree::Binary(op, two.into())),
                (call, two).prop_map(|(name, (a, b))| Tree::Call(name, vec![a, b])),
                (one, inner).prop_map(|(name, a)| Tree::Call(name, vec![a])),
            ]
        })
    }

    impl Tree {
        fn text(&self) -> String {
            match self {
                Self::Number(number) => number.to_string(),
                Self::Feature(feature) => feature.name().to_owned(),
                Self::Negate(of) => format!("-({})", of.text()),
                Self::Binary(op, two) => format!("({} {op} {})", two.0.text(), two.1.text()),
                Self::Call(name, of) => {
                    let of: Vec<_> = of.iter().map(Self::text).collect();
                    format!("{name}({})", of.join(","))
                }
            }
        }

        fn value(&self, features: &Features) -> f64 {
            let raw = match self {
                Self::Number(number) => *number,
                Self::Feature(feature) => features.of(*feature),
                Self::Negate(of) => -of.value(features),
                Self::Binary(op, two) => {
                    let (a, b) = (two.0.value(features), two.1.value(features));
                    match op {
                        '+' => a + b,
                        '-' => a - b,
                        '*' => a * b,
                        _ if b == 0.0 => 0.0,
                        _ => a / b,
                    }
                }
                Self::Call(name, of) => {
                    let of: Vec<_> = of.iter().map(|of| of.value(features)).collect();
                    match (*name, of.as_slice()) {
                        ("min", [a, b]) => a.min(*b),
                        ("max", [a, b]) => a.max(*b),
                        ("log", [a]) => {
                            if *a > 0.0 {
                                a.ln()
                            } else {
                                0.0
                            }
                        }
                        ("exp", [a]) => a.exp(),
                        (_, [a, b]) => match () {
                            () if *a <= 0.0 => 1.0,
                            () if *b <= 0.0 => 0.0,
                            () => (-a / b).exp2(),
                        },
                        _ => unreachable!("{name}"),
                    }
                }
            };
            if raw.is_nan() { 0.0 } else { raw.clamp(-1e18, 1e18) }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn the_stack_machine_computes_the_value_of_the_tree(
            tree in tree(),
            values in prop::collection::vec(prop_oneof![-10.0..1e6, Just(f64::NAN), Just(0.0)], FEATURES),
        ) {
            let mut features = Features::default();
            for (feature, value) in Feature::ALL.into_iter().zip(values) {
                features.set(feature, value);
            }
            let text = tree.text();
            match Expression::parse(&text) {
                Ok(parsed) => {
                    let all = [Features::default(), features];
                    // More posts than are evaluated at once.
                    let posts = || all.iter().cycle().take(LANES + 3);
                    let expected = posts().map(|post| tree.value(post).to_bits());
                    let found = parsed.values(posts()).into_iter().map(f64::to_bits);
                    prop_assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
                    prop_assert!(parsed.cost() <= OPS_MAX && tree.value(&features).is_finite());
                }
                Err(error) => prop_assert!(
                    text.len() > TEXT_BYTES_MAX
                        || error.problem.contains("operations")
                        || error.problem.contains("deep"),
                    "{} {}", text, error
                ),
            }
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "[ a-z0-9+*/(),.ä-]{0,60}") {
            if let Ok(parsed) = Expression::parse(&text) {
                prop_assert!(parsed.values([&Features::default()])[0].is_finite());
            }
        }
    }
}
