//! Filters: effects of their commands, their limits, and their removal.

use crate::support::{World, block, id, register};
use feed::filters::{
    Filter, FilterAction, FilterChange, FilterCommand, FilterContext, FilterContexts, FilterEdit,
    FilterId, FilterPartId, FilterText, FilterTime, Keyword, KeywordChange, NewFilter,
};
use feed::limits::{
    FILTER_KEYWORDS_MAX, FILTER_SECS_MAX, FILTERED_POSTS_MAX, FILTERS_MAX, KEYWORD_CHANGES_MAX,
};
use feed::{
    Command, Done, Draft, Effect, ErasurePhase, Input, Outcome, PostId, PostText, Reaction,
    Refusal, UserId, Visibility,
};
use rows::{NameTable, Rows as _};

fn run(world: &mut World, user: u32, change: FilterChange) -> Outcome {
    world.run(Command::Filter(Box::new(FilterCommand { user: id(user), change })))
}

fn text(text: &str) -> FilterText {
    FilterText::parse(text).unwrap()
}

fn keyword(word: &str) -> Keyword {
    Keyword { text: text(word), whole_word: true }
}

fn new(keywords: &[&str]) -> NewFilter {
    NewFilter {
        title: text("title"),
        contexts: FilterContexts::new([FilterContext::Home]).unwrap(),
        action: FilterAction::Warn,
        expires: None,
        keywords: keywords.iter().map(|word| keyword(word)).collect(),
    }
}

fn create(world: &mut World, user: u32, keywords: &[&str]) -> FilterId {
    match run(world, user, FilterChange::Create(new(keywords))) {
        Ok(Done::FilterSaved(id)) => id,
        other => panic!("{other:?}"),
    }
}

fn filters(world: &World, user: u32) -> Vec<Filter> {
    world.facts().filters(UserId(user))
}

/// Keywords of a filter as texts, and their ids.
fn keywords(filter: &Filter) -> (Vec<&str>, Vec<FilterPartId>) {
    filter.keywords.iter().map(|found| (found.keyword.text.as_str(), found.id)).unzip()
}

#[test]
fn a_filter_is_changed_as_a_whole_or_not_at_all() {
    let mut world = World::new();
    let filter = create(&mut world, 0, &["one", "two"]);
    let before = filters(&world, 0);
    let (words, ids) = keywords(&before[0]);
    assert_eq!((words, before[0].id), (vec!["one", "two"], filter));
    let edit = |keywords: Vec<KeywordChange>| FilterEdit {
        title: Some(text("changed")),
        contexts: FilterContexts::new([FilterContext::Thread, FilterContext::Public]).ok(),
        action: Some(FilterAction::Hide),
        expires: Some(FilterTime::from_secs(60).ok()),
        keywords,
        ..FilterEdit::new(filter)
    };
    let [one, two] = [ids[0], ids[1]];
    let remove = |keyword| KeywordChange::Remove { keyword };
    let wrong = FilterPartId(7);
    for changes in [vec![remove(one), remove(one)], vec![remove(wrong)]] {
        let outcome = run(&mut world, 0, FilterChange::Edit(edit(changes)));
        assert_eq!(outcome, Err(Refusal::FilterNotFound));
        assert_eq!(filters(&world, 0), before);
    }
    let changed =
        KeywordChange::Edit { keyword: two, text: Some(text("zwei")), whole_word: Some(false) };
    let changes = vec![remove(one), KeywordChange::Add(keyword("three")), changed];
    assert_eq!(
        run(&mut world, 0, FilterChange::Edit(edit(changes))),
        Ok(Done::FilterSaved(filter))
    );
    let after = filters(&world, 0).remove(0);
    let (words, ids) = keywords(&after);
    assert_eq!((words, ids[0]), (vec!["zwei", "three"], two));
    assert!(ids[1] > two && !after.keywords[0].keyword.whole_word);
    assert_eq!((after.title.as_str(), after.action), ("changed", FilterAction::Hide));
    let names: Vec<_> = after.contexts.iter().map(FilterContext::name).collect();
    assert_eq!(names, ["public", "thread"]);
    assert!(after.expires_ms.is_some());
    // Fields that an edit does not name stay.
    let edit = FilterEdit { expires: Some(None), ..FilterEdit::new(filter) };
    run(&mut world, 0, FilterChange::Edit(edit)).unwrap();
    assert_eq!(filters(&world, 0), [Filter { expires_ms: None, ..after }]);
    let other = FilterChange::Delete { filter };
    assert_eq!(run(&mut world, 1, other.clone()), Err(Refusal::FilterNotFound), "not theirs");
    assert_eq!(run(&mut world, 0, other), Ok(Done::FilterDeleted));
    assert_eq!(world.rows.first_name(NameTable::Filters, &[]), None, "no row is left");
}

#[test]
fn ids_of_keywords_and_posts_are_unique_among_those_of_a_user() {
    let mut world = World::new();
    let post = world.post(0, "a post");
    let filter = create(&mut world, 0, &["a", "b", "c"]);
    let other = create(&mut world, 0, &["d"]);
    for (filter, word) in [(filter, "e"), (other, "f"), (other, "g")] {
        run(&mut world, 0, FilterChange::AddKeyword { filter, keyword: keyword(word) }).unwrap();
    }
    run(&mut world, 0, FilterChange::AddPost { filter: other, post }).unwrap();
    let all = filters(&world, 0);
    let mut ids: Vec<_> = all.iter().flat_map(|filter| keywords(filter).1).collect();
    ids.extend(all[1].posts.iter().map(|post| post.id));
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), count), (8, 8));
}

#[test]
fn the_numbers_of_filters_keywords_and_posts_are_bounded() {
    let mut world = World::new();
    let filter = create(&mut world, 0, &[]);
    for _ in 1..FILTERS_MAX {
        create(&mut world, 0, &[]);
    }
    let one_more = FilterChange::Create(new(&[]));
    assert_eq!(run(&mut world, 0, one_more.clone()), Err(Refusal::TooManyFilters));
    assert!(run(&mut world, 1, one_more).is_ok(), "of each user");
    let all = vec!["x"; FILTER_KEYWORDS_MAX + 1];
    let too_many = FilterChange::Create(new(&all));
    assert_eq!(run(&mut world, 1, too_many), Err(Refusal::TooManyKeywords));
    create(&mut world, 1, &all[1..]);
    let second = filters(&world, 1)[0].id;
    let add = FilterChange::AddKeyword { filter: second, keyword: keyword("x") };
    assert_eq!(run(&mut world, 1, add), Err(Refusal::TooManyKeywords), "of all filters");
    let add = KeywordChange::Add(keyword("x"));
    let keywords = vec![add; KEYWORD_CHANGES_MAX + 1];
    let edit = FilterEdit { keywords, ..FilterEdit::new(second) };
    assert_eq!(run(&mut world, 1, FilterChange::Edit(edit)), Err(Refusal::TooManyKeywords));
    let posts: Vec<PostId> = (0..=FILTERED_POSTS_MAX).map(|_| world.post(2, "a post")).collect();
    for post in &posts[1..] {
        run(&mut world, 0, FilterChange::AddPost { filter, post: *post }).unwrap();
    }
    let add = FilterChange::AddPost { filter, post: posts[0] };
    assert_eq!(run(&mut world, 0, add.clone()), Err(Refusal::TooManyFilteredPosts));
    world.run(Command::DeletePost { post: posts[1] }).unwrap();
    assert!(run(&mut world, 0, add).is_ok(), "deleted posts do not count");
    assert_eq!(filters(&world, 0)[0].posts.len(), FILTERED_POSTS_MAX);
    world.run(block(id(2), id(0))).unwrap();
    let add = FilterChange::AddPost { filter, post: world.post(1, "a post") };
    assert!(run(&mut world, 0, add).is_ok(), "those that are hidden from the user neither");
    assert_eq!(filters(&world, 0)[0].posts.len(), 1);
    for (secs, is_right) in [(0, true), (FILTER_SECS_MAX, true), (FILTER_SECS_MAX + 1, false)] {
        assert_eq!(FilterTime::from_secs(secs).is_ok(), is_right, "{secs}");
    }
}

#[test]
fn only_posts_that_the_user_may_see_are_filtered() {
    let mut world = World::new();
    let filter = create(&mut world, 0, &[]);
    let private = Draft {
        visibility: Visibility::Direct,
        ..Draft::new(id(1), PostText::parse("private").unwrap())
    };
    let Ok(Done::Posted(private)) = world.run(Command::Publish(Box::new(private))) else {
        panic!("a post")
    };
    let [post, deleted, of_blocker] = [1, 1, 2].map(|author| world.post(author, "a post"));
    world.run(Command::DeletePost { post: deleted }).unwrap();
    world.run(block(id(2), id(0))).unwrap();
    for post in [private, deleted, of_blocker, PostId(7)] {
        let add = FilterChange::AddPost { filter, post };
        assert_eq!(run(&mut world, 0, add), Err(Refusal::PostNotFound), "{post:?}");
    }
    let (on, reaction) = (true, Reaction::Boost);
    world.run(Command::React { user: id(1), post, reaction, on }).unwrap();
    let boost = PostId(world.facts().reaction(UserId(1), post, Reaction::Boost).unwrap());
    let mut parts = Vec::new();
    for post in [post, post, boost] {
        parts.push(run(&mut world, 0, FilterChange::AddPost { filter, post }).unwrap());
    }
    assert!(parts.iter().all(|part| *part == parts[0]), "of a boost, what it boosts");
    let found = filters(&world, 0)[0].posts.clone();
    assert_eq!((found.len(), found[0].post), (1, post));
    // A later block does not reveal whether the post or the boost still exists.
    world.run(register("dan")).unwrap();
    let of_blocker = world.post(3, "a post");
    world.run(Command::React { user: id(3), post, reaction, on }).unwrap();
    let boost = PostId(world.facts().reaction(UserId(3), post, Reaction::Boost).unwrap());
    run(&mut world, 0, FilterChange::AddPost { filter, post: of_blocker }).unwrap();
    world.run(block(id(3), id(0))).unwrap();
    for post in [of_blocker, boost] {
        let add = FilterChange::AddPost { filter, post };
        assert_eq!(run(&mut world, 0, add), Err(Refusal::PostNotFound), "{post:?}");
    }
    let remove = FilterChange::RemovePost { filter, part: found[0].id };
    assert_eq!(run(&mut world, 0, remove.clone()), Ok(Done::FilterSaved(filter)));
    assert_eq!(run(&mut world, 0, remove), Err(Refusal::FilterNotFound));
}

#[test]
fn a_change_has_one_effect_and_what_changes_nothing_has_none() {
    let mut world = World::new();
    let filter = create(&mut world, 0, &["a"]);
    let title = Some(text("other"));
    let edit = FilterChange::Edit(FilterEdit { title, ..FilterEdit::new(filter) });
    for expect in [&[Effect::Input { user: UserId(0), input: Input::Filters }][..], &[]] {
        world.effects.clear();
        run(&mut world, 0, edit.clone()).unwrap();
        assert_eq!(world.effects, expect);
    }
}

#[test]
fn nothing_is_left_of_the_filters_of_a_deleted_user() {
    let mut world = World::new();
    create(&mut world, 0, &["a"]);
    create(&mut world, 1, &["b"]);
    world.run(Command::DeleteUser { user: id(0) }).unwrap();
    let erase = Command::EraseUser { user: UserId(0), phase: ErasurePhase::LAST, from: 0 };
    world.run(erase).unwrap();
    assert_eq!((filters(&world, 0).len(), filters(&world, 1).len()), (0, 1));
    assert_eq!(run(&mut world, 0, FilterChange::Create(new(&[]))), Err(Refusal::UserNotFound));
}
