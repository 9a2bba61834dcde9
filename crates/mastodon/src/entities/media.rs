//! Entity `MediaAttachment`, and the URLs of pictures.

use feed::media::{Media, MediaFile, MediaId};
use node::{picture_file, picture_path};
use serde_json::{Value, json};

use super::Entities;

impl Entities<'_> {
    /// Entities `MediaAttachment` of pictures, in order. Reads nothing for an empty list.
    pub(crate) fn attachments(&self, ids: &[MediaId]) -> Vec<Value> {
        let found = ids.iter().filter_map(|id| Some((*id, self.facts().media(*id)?)));
        found.map(|(id, media)| self.attachment(id, &media)).collect()
    }

    /// Entity `MediaAttachment` of a picture.
    pub(crate) fn attachment(&self, id: MediaId, media: &Media) -> Value {
        let (x, y) = media.focus.unwrap_or_default().coordinates();
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        json!({
            "id": id.0.to_string(),
            "type": "image",
            "url": self.picture_url(id, media, false),
            "preview_url": self.picture_url(id, media, true),
            "remote_url": null,
            "preview_remote_url": null,
            "text_url": null,
            "meta": {
                "original": size(&media.original),
                "small": size(picture_file(media, true)),
                "focus": {"x": decimal(x), "y": decimal(y)},
            },
            "description": text(media.description.as_str()),
            "blurhash": text(media.blurhash.as_str()),
        })
    }

    /// URL of a picture or of its preview.
    fn picture_url(&self, id: MediaId, media: &Media, is_small: bool) -> String {
        format!("{}{}", self.base(), picture_path(id, media, is_small))
    }

    /// URL and description of a profile picture. `missing` is the path of the default picture.
    pub(crate) fn profile_picture(&self, id: Option<MediaId>, missing: &str) -> (String, String) {
        let found = id.and_then(|id| Some((id, self.facts().media(id)?)));
        match found {
            Some((id, media)) => {
                (self.picture_url(id, &media, false), media.description.as_str().to_owned())
            }
            None => (format!("{}{missing}", self.base()), String::new()),
        }
    }
}

fn size(file: &MediaFile) -> Value {
    let (width, height) = (file.width, file.height);
    json!({
        "width": width,
        "height": height,
        "size": format!("{width}x{height}"),
        "aspect": f64::from(width) / f64::from(height.max(1)),
    })
}

/// Coordinate with the four decimals that are stored.
fn decimal(coordinate: f32) -> f64 {
    (f64::from(coordinate) * 10_000.0).round() / 10_000.0
}
