//! Removes rows whose bytes are not a valid record.

use rows::{NameTable, PointTable, RowsMut, Scan, try_decode};

use super::{From, Rows, STEP_ROWS};
use crate::accounts::{Account, App, Grant, Invite, Record as _};
use crate::boost::PostCounts;
use crate::command::Outcome;
use crate::ids::UserId;
use crate::list::List;
use crate::marker::Markers;
use crate::media::MediaSpace;
use crate::notification::Inbox;
use crate::poll::PollCounts;
use crate::records::{Counts, Post, Sample, SampleSet, Story, User};
use crate::schedule::ScheduledPost;
use crate::text::{Note, PostText};

impl<R: Scan + RowsMut> Rows<'_, R> {
    pub(super) fn point_records(&mut self, table: PointTable, from: u64) -> Option<From> {
        let (found, next) = self.rows.points_from(table, from, STEP_ROWS);
        for (key, value) in found {
            let is_record = match table {
                PointTable::User => User::try_decode(&value).is_some(),
                PointTable::Counts => Counts::try_decode(&value).is_some(),
                PointTable::Post => Post::try_decode(&value).is_some(),
                PointTable::Story => try_decode::<Story>(&value).is_some(),
                PointTable::StoryText => try_decode::<PostText>(&value).is_some(),
                PointTable::Sample => try_decode::<Sample>(&value).is_some(),
                PointTable::Account => Account::try_of_row(&value).is_some(),
                PointTable::App => App::try_of_row(&value).is_some(),
                PointTable::Grant => Grant::try_of_row(&value).is_some(),
                PointTable::AppUses => try_decode::<u32>(&value).is_some(),
                PointTable::PostCounts => PostCounts::try_decode(&value).is_some(),
                PointTable::PollCounts => try_decode::<PollCounts>(&value).is_some(),
                PointTable::Inbox => try_decode::<Inbox>(&value).is_some(),
                PointTable::Note => try_decode::<Note>(&value).is_some(),
                PointTable::Markers => try_decode::<Markers>(&value).is_some(),
                PointTable::BucketOfSpace => true,
            };
            if !is_record {
                self.lost(format!("{table:?} {key}: the row is malformed"));
                self.rows.put_point(table, key, None);
            }
        }
        next.map(|next| From { place: (next, 0), ..From::default() })
    }

    pub(super) fn name_record(&mut self, table: NameTable, name: &[u8], value: &[u8]) {
        let is_record = match table {
            NameTable::Handle => try_decode::<UserId>(value).is_some(),
            NameTable::Idempotency => {
                name.len() == 20 && try_decode::<([u8; 8], Outcome)>(value).is_some()
            }
            NameTable::SampleSet => try_decode::<SampleSet>(value).is_some(),
            NameTable::SampleLabel => name.len() > 8 && try_decode::<u32>(value).is_some(),
            NameTable::Email => try_decode::<UserId>(value).is_some(),
            NameTable::Invite => name.len() == 32 && Invite::try_of_row(value).is_some(),
            NameTable::GrantSecret => name.len() == 32 && try_decode::<u64>(value).is_some(),
            NameTable::Due => super::due::is_record(name, value),
            NameTable::FeaturedTag | NameTable::FollowedTag => {
                name.len() > 4 && try_decode::<u64>(value).is_some()
            }
            NameTable::Filters => name.len() == 4 && super::whole::is_record(value),
            NameTable::Scheduled => {
                name.len() == 12 && try_decode::<ScheduledPost>(value).is_some()
            }
            NameTable::List => try_decode::<List>(value).is_some(),
            NameTable::Media => name.len() == 8 && super::media::is_record(value),
            NameTable::Conversations => name.len() == 4 && super::whole::are_marks(value),
            NameTable::PostVersions => name.len() == 8 && super::posts::are_versions(value),
            NameTable::FollowOptions => name.len() == 4 && super::whole::are_options(value),
            NameTable::MutedThreads => name.len() == 4 && super::whole::are_threads(value),
            NameTable::MediaSpace => try_decode::<MediaSpace>(value).is_some(),
            NameTable::MediaFile | NameTable::MediaOf => true,
            NameTable::TagPost | NameTable::AuthorTag | NameTable::ConversationPost => true,
            NameTable::ListMember | NameTable::ListedUser => true,
            NameTable::Bucket | NameTable::KeyExpiry | NameTable::Sender => true,
            NameTable::GrantOf | NameTable::UnusedApp => true,
            #[cfg(feature = "next-format")]
            NameTable::Next => true,
        };
        if !is_record {
            self.lost(format!("{table:?} {}: the row is malformed", name.escape_ascii()));
            self.rows.put_name(table, name, None);
        }
    }
}
