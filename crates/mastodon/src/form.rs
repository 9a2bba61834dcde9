//! Forms with files: the parameters and the files.

use std::mem;
use std::ops::Range;

use axum::body::HttpBody as _;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;

use crate::bodies;
use crate::error::ApiError;
use crate::fields::{Fields, MULTIPART, Params, content_type, parts_of, read_body};
use crate::limiter::What;
use crate::state::Shared;
use crate::tokens::Access;
use crate::uploads::Uploading;

/// Parameters and files of a user's request. Only a multipart form has files.
pub(crate) struct Form {
    pub(crate) fields: Fields,
    pub(crate) files: Files,
}

/// Files with their names in the form. The memory of a long form stays reserved until this is dropped.
#[derive(Default)]
pub(crate) struct Files {
    body: Vec<u8>,
    found: Vec<(String, Range<usize>)>,
    upload: Option<Uploading>,
    /// Whether the request was already counted as an upload, before its long body was read.
    is_counted: bool,
}

impl Files {
    pub(crate) fn is_counted(&self) -> bool {
        self.is_counted
    }

    /// Bytes of a file.
    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        let (_, range) = self.found.iter().find(|(given, _)| given == name)?;
        self.body.get(range.clone())
    }

    /// Drops the files with other names.
    pub(crate) fn keep(&mut self, names: &[&str]) {
        self.found.retain(|(given, _)| names.contains(&given.as_str()));
    }

    /// Removes and returns a file. The last one is not copied.
    ///
    /// # Errors
    /// 503 if there is no memory for a copy.
    pub(crate) fn take(&mut self, name: &str) -> Result<Option<Vec<u8>>, ApiError> {
        let Some(at) = self.found.iter().position(|(given, _)| given == name) else {
            return Ok(None);
        };
        let (_, range) = self.found.remove(at);
        if self.found.is_empty() {
            let mut body = mem::take(&mut self.body);
            body.truncate(range.end);
            body.drain(..range.start);
            return Ok(Some(body));
        }
        if let Some(upload) = &mut self.upload {
            upload.pay(range.len())?;
        }
        Ok(self.body.get(range).map(<[u8]>::to_vec))
    }
}

impl FromRequest<Shared> for Form {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Shared) -> Result<Self, ApiError> {
        let (content_type, kind) = content_type(request.headers());
        // Only pictures make a form long. A node that accepts no pictures has no memory for long forms.
        if kind != MULTIPART || !state.node.accepts_pictures() {
            let Params(fields) = Params::from_request(request, state).await?;
            return Ok(Self { fields, files: Files::default() });
        }
        let access = request.extensions().get::<Access>().copied();
        let access = access.ok_or_else(ApiError::no_user)?;
        let user = access.user.ok_or_else(ApiError::no_user)?;
        let in_query = Fields::of_query(request.uri().query().unwrap_or_default())?;
        let most = request.body().size_hint().upper();
        let is_long = most.is_none_or(|bytes| bytes > bodies::BODY_BYTES_MAX as u64);
        if is_long {
            state.limit(What::Uploads, u64::from(user.0))?;
        }
        // A short form does not wait for the uploads of the same user.
        let (body, upload) = match is_long {
            true => {
                let mut upload = state.uploads.begin(user).await?;
                (upload.read(request.into_body()).await?, Some(upload))
            }
            false => (read_body(request, state).await?.body.into_parts().0, None),
        };
        // The token may have ended while the body arrived.
        state.confirm(&access).await?;
        let parts = parts_of(&body, &content_type)?;
        // Browsers send an empty file where the user chose none.
        let parts = parts.into_iter().filter(|part| !part.is_file || !part.content.is_empty());
        let (files, texts): (Vec<_>, Vec<_>) = parts.partition(|part| part.is_file);
        if texts.iter().map(|part| part.content.len()).sum::<usize>() > bodies::BODY_BYTES_MAX {
            let why = "The fields of the form are too long";
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
        let fields = in_query.and(Fields::of_parts(&body, texts.into_iter())?)?;
        let found = files.into_iter().map(|part| (part.name, part.content)).collect();
        let files = Files { body, found, upload, is_counted: is_long };
        Ok(Self { fields, files })
    }
}
