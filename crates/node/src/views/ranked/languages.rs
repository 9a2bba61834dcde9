//! Languages with a list of popular posts. Other codes count as no language, so that made-up ones take no place.

use feed::Language;

/// Codes in ascending order: those of ISO 639-1, and of ISO 639-3 some that apps offer.
#[rustfmt::skip]
pub(super) const LANGUAGES: [&str; 239] = [
    "aa", "ab", "ae", "af", "ak", "am", "an", "ar", "as", "ast", "av", "ay", "az", "ba", "be",
    "bg", "bh", "bi", "bm", "bn", "bo", "br", "bs", "ca", "ce", "ceb", "ch", "chr", "ckb", "cnr",
    "co", "cr", "cs", "csb", "cu", "cv", "cy", "da", "de", "dsb", "dv", "dz", "ee", "el", "en",
    "eo", "es", "et", "eu", "fa", "ff", "fi", "fil", "fj", "fo", "fr", "fur", "fy", "ga", "gd",
    "gl", "gn", "gsw", "gu", "gv", "ha", "haw", "he", "hi", "hil", "hmn", "ho", "hr", "hsb", "ht",
    "hu", "hy", "hz", "ia", "id", "ie", "ig", "ii", "ik", "ilo", "io", "is", "it", "iu", "ja",
    "jbo", "jv", "ka", "kab", "kg", "ki", "kj", "kk", "kl", "km", "kmr", "kn", "ko", "kr", "ks",
    "ku", "kv", "kw", "ky", "la", "lb", "ldn", "lfn", "lg", "li", "ln", "lo", "lt", "lu", "lv",
    "mai", "mg", "mh", "mi", "mk", "ml", "mn", "mni", "moh", "mos", "mr", "ms", "mt", "my", "na",
    "nah", "nap", "nb", "nd", "nds", "ne", "new", "ng", "nl", "nn", "no", "nr", "nv", "ny", "oc",
    "oj", "om", "or", "os", "pa", "pam", "pap", "pcm", "pdc", "pi", "pl", "pms", "ps", "pt", "qu",
    "rm", "rn", "ro", "ru", "rw", "sa", "sah", "sat", "sc", "scn", "sco", "sd", "se", "sg", "si",
    "sk", "sl", "sm", "sma", "smj", "smn", "sms", "sn", "so", "sq", "sr", "srn", "ss", "st", "su",
    "sv", "sw", "szl", "ta", "te", "tet", "tg", "th", "ti", "tk", "tl", "tn", "to", "tok", "tpi",
    "tr", "ts", "tt", "tw", "ty", "tzm", "udm", "ug", "uk", "ur", "uz", "vai", "ve", "vec", "vi",
    "vo", "wa", "war", "wo", "xal", "xh", "yi", "yo", "yue", "za", "zba", "zgh", "zh", "zu",
];

/// Number of a language; 0 for an unknown one.
pub(crate) fn language_number(language: &Language) -> u16 {
    let found = LANGUAGES.binary_search(&language.as_str());
    found.map_or(0, |place| place as u16 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_languages_have_numbers_and_others_none() {
        assert!(LANGUAGES.is_sorted_by(|a, b| a < b));
        let number = |code| language_number(&Language::parse(code).unwrap());
        assert!(number("en") > 0 && number("en-GB") == number("EN") && number("zu") > number("en"));
        assert_eq!(["xx", "qqq"].map(number), [0, 0]);
    }
}
