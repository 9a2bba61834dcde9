//! Comparison of the versions of edited posts with the model.

use feed::limits::{VERSIONS_BYTES_MAX, VERSIONS_MAX};
use feed::{Content, PostId, PostVersion};

use crate::model::versions::ModelVersion;
use crate::run::Run;

/// Maximum size of the uncounted parts of a version, in bytes.
const OTHER_BYTES: usize = 200;

impl Run {
    /// Checks the earlier versions of a post: the first one, and as many of the newest ones as the node can keep.
    pub(super) fn check_versions(&self, post: PostId) {
        let found = self.node().node().facts().post_versions(post);
        let found: Vec<_> = found.into_iter().map(model_version).collect();
        let all = self.model.feed.versions.get(&post.0).map_or(&[][..], Vec::as_slice);
        assert_eq!(found.first(), all.first(), "the first version of post {}", post.0);
        let newest = found.get(1..).unwrap_or_default();
        assert!(all.ends_with(newest), "post {}: {newest:?} of {all:?}", post.0);
        if found.len() < all.len() && found.len() < VERSIONS_MAX {
            let dropped = &all[all.len() - found.len()];
            let bytes = |version: &ModelVersion| {
                let options = version.poll.iter().flatten().map(String::len).sum::<usize>();
                let Content { text, warning, .. } = &version.content;
                text.as_str().len() + warning.as_str().len() + options + OTHER_BYTES
            };
            let bytes = found.iter().chain([dropped]).map(bytes).sum::<usize>();
            assert!(bytes > VERSIONS_BYTES_MAX, "post {} has only {found:?}", post.0);
        }
    }
}

fn model_version(version: PostVersion) -> ModelVersion {
    let options = version.poll.map(|options| {
        options.as_slice().iter().map(|option| option.as_str().to_owned()).collect()
    });
    ModelVersion { since: version.since.0, content: version.content, poll: options }
}
