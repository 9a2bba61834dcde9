//! The status, and the field, of each refusal of the rules.

use axum::http::StatusCode;
use feed::Refusal;
use kv::KeyRefusal;

use super::ApiError;

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal {
            Refusal::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Refusal::TooManyDeletions => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::UserNotFound
            | Refusal::PostNotFound
            | Refusal::StoryNotFound
            | Refusal::SampleNotFound
            | Refusal::NotificationNotFound
            | Refusal::RequestNotFound
            | Refusal::ListNotFound => StatusCode::NOT_FOUND,
            Refusal::HandleTaken | Refusal::SampleBuiltIn | Refusal::StaleMarker => {
                StatusCode::CONFLICT
            }
            Refusal::Full
            | Refusal::SetFull
            | Refusal::TooManyLabels
            | Refusal::TooManySets
            | Refusal::SamplesFull => StatusCode::INSUFFICIENT_STORAGE,
            Refusal::BadHandle
            | Refusal::BadName
            | Refusal::BadBio
            | Refusal::BadText
            | Refusal::BadLifetime
            | Refusal::BadLabel
            | Refusal::BadSet
            | Refusal::SelfFollow
            | Refusal::SelfFriend
            | Refusal::TooManyFollows
            | Refusal::TooManyFriends
            | Refusal::TooManyPosts
            | Refusal::ParentNotFound
            | Refusal::Account(_)
            | Refusal::Media(_)
            | Refusal::Filter(_)
            | Refusal::Poll(_)
            | Refusal::Schedule(_)
            | Refusal::SelfBlock
            | Refusal::SelfMute
            | Refusal::TooManyBlocks
            | Refusal::TooManyMutes
            | Refusal::Blocked
            | Refusal::BadMuteTime
            | Refusal::BadWarning
            | Refusal::BadLanguage
            | Refusal::PinNotOwn
            | Refusal::PinDirect
            | Refusal::TooManyPins
            | Refusal::BoostNotOpen
            | Refusal::BadField
            | Refusal::TooManyFields
            | Refusal::BadNote
            | Refusal::TooManyNotes
            | Refusal::BadTag
            | Refusal::TooManyTags
            | Refusal::TooManyFollowedTags
            | Refusal::TooManyFollowOptions
            | Refusal::BadListTitle
            | Refusal::TooManyLists
            | Refusal::ListFull
            | Refusal::NotFollowed
            | Refusal::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        };
        let error = Self::new(status, refusal.code(), refusal.to_string());
        match field(refusal) {
            Some(field) => error.at(field),
            None => error,
        }
    }
}

/// The field that a refusal is about, where its name does not depend on the request.
fn field(refusal: Refusal) -> Option<&'static str> {
    Some(match refusal {
        Refusal::BadHandle | Refusal::HandleTaken => "handle",
        Refusal::BadName => "name",
        Refusal::BadBio => "bio",
        Refusal::BadField | Refusal::TooManyFields => "fields",
        Refusal::BadText => "text",
        Refusal::BadLifetime => "ttl_s",
        Refusal::BadLabel | Refusal::TooManyLabels => "label",
        Refusal::BadSet | Refusal::SetFull | Refusal::TooManySets => "set",
        Refusal::SelfFollow
        | Refusal::SelfFriend
        | Refusal::SelfBlock
        | Refusal::SelfMute
        | Refusal::Blocked => "other",
        Refusal::BadMuteTime => "duration_s",
        Refusal::BadWarning => "warning",
        Refusal::BadLanguage => "language",
        Refusal::BadTag => "tag",
        Refusal::ParentNotFound => "in_reply_to_id",
        Refusal::KeyReused => "Idempotency-Key",
        Refusal::UserNotFound
        | Refusal::PostNotFound
        | Refusal::StoryNotFound
        | Refusal::SampleNotFound
        | Refusal::SampleBuiltIn
        | Refusal::Full
        | Refusal::TooManyFollows
        | Refusal::TooManyFriends
        | Refusal::TooManyPosts
        | Refusal::TooManyBlocks
        | Refusal::TooManyMutes
        | Refusal::SamplesFull
        | Refusal::TooManyDeletions
        | Refusal::PinNotOwn
        | Refusal::PinDirect
        | Refusal::TooManyPins
        | Refusal::BoostNotOpen
        | Refusal::StaleMarker
        | Refusal::RequestNotFound
        | Refusal::BadNote
        | Refusal::TooManyNotes
        | Refusal::TooManyTags
        | Refusal::TooManyFollowedTags
        | Refusal::TooManyFollowOptions
        | Refusal::ListNotFound
        | Refusal::BadListTitle
        | Refusal::TooManyLists
        | Refusal::ListFull
        | Refusal::NotFollowed
        | Refusal::NotificationNotFound
        | Refusal::Internal
        | Refusal::Account(_)
        | Refusal::Media(_)
        | Refusal::Filter(_)
        | Refusal::Poll(_)
        | Refusal::Schedule(_) => return None,
    })
}

impl From<KeyRefusal> for ApiError {
    fn from(refusal: KeyRefusal) -> Self {
        if refusal == KeyRefusal::Busy {
            return Self::overloaded();
        }
        let (status, code) = match refusal {
            KeyRefusal::BucketNotFound => (StatusCode::NOT_FOUND, "bucket_not_found"),
            KeyRefusal::BucketStays => (StatusCode::CONFLICT, "bucket_stays"),
            KeyRefusal::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
            KeyRefusal::TooManyBuckets | KeyRefusal::SpacesUsedUp => {
                (StatusCode::INSUFFICIENT_STORAGE, "too_many_buckets")
            }
            // Of operations that are not available over HTTP.
            KeyRefusal::KeyNotFound
            | KeyRefusal::NotInteger
            | KeyRefusal::NotFloat
            | KeyRefusal::Overflow
            | KeyRefusal::NotFinite
            | KeyRefusal::TooLong
            | KeyRefusal::TooLarge
            | KeyRefusal::BadKey
            | KeyRefusal::Busy
            | KeyRefusal::SameKey => (StatusCode::UNPROCESSABLE_ENTITY, "bad_value"),
        };
        Self::new(status, code, refusal.to_string())
    }
}
