//! Profiles of a simulation, and the options that belong to each.

use std::sync::Arc;

use clap::ValueEnum;
use sim::client::Target;
use sim::workload::{KeyLoad, Load, Ycsb};
use sim::{ApiOptions, Drawings, SimulateOptions, StoryLoad};

use super::Simulate;
use super::arguments::{Api, Busy};
use crate::exit::Exit;

/// Actions of simulated users.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Profile {
    /// Follow, post and read home timelines.
    Feed,
    /// Post stories to friends, and read them.
    Stories,
    /// Read and write the keys of a bucket, with a workload of YCSB.
    Buckets,
    /// Recognize the built-in drawings of digits, each slightly distorted.
    Recognize,
    /// 60 % home timelines, 30 % user timelines, 10 % posts: the mixed workload of DeathStarBench's
    /// social network.
    Deathstar,
    /// Evaluate ranked feeds: users with a known taste read each feed, and the posts are compared with those that they
    /// would like.
    Feeds,
}

/// Core workloads of YCSB.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Letter {
    /// Half reads, half updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads.
    C,
    /// 95 % reads of the latest records, 5 % inserts.
    D,
    /// 95 % scans of 1 to 100 keys, 5 % inserts.
    E,
    /// Half reads, half read-modify-writes.
    F,
}

/// Components of a simulation.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) feed: Option<Load>,
    pub(super) stories: Option<StoryLoad>,
    pub(super) drawings: Option<Drawings>,
    pub(super) keys: Option<KeyLoad>,
}

impl Simulate {
    /// Checks that every option belongs to the profile.
    fn check(&self) -> anyhow::Result<()> {
        self.check_api()?;
        let belongs = |profile: Profile, is_set: bool, what: &str| {
            if self.profile == profile || !is_set { Ok(()) } else { Err(Exit::usage(what)) }
        };
        let of_stories = [self.friends, self.stories, self.life, self.home_reads];
        belongs(
            Profile::Stories,
            of_stories.iter().any(Option::is_some),
            "--friends, --stories, --life and --home-reads belong to --profile stories",
        )?;
        let of_keys = self.ycsb.is_some() || self.records.is_some() || self.value_bytes.is_some();
        belongs(
            Profile::Buckets,
            of_keys,
            "--ycsb, --records and --value-bytes belong to --profile buckets",
        )?;
        let of_feeds = self.feeds.is_some() || self.seeds.is_some();
        belongs(Profile::Feeds, of_feeds, "--feeds and --seeds belong to --profile feeds")?;
        if self.profile == Profile::Feeds {
            self.check_feeds()?;
        }
        belongs(
            Profile::Feed,
            self.load.is_some() || self.flash.is_some(),
            "--load and --flash belong to --profile feed",
        )
    }

    /// Checks that the API supports the profile.
    fn check_api(&self) -> anyhow::Result<()> {
        let is_mastodon = self.api == Api::Mastodon;
        if self.tokens.is_some() && !is_mastodon {
            return Err(Exit::usage("--tokens belongs to --api mastodon"));
        }
        if is_mastodon && !matches!(self.profile, Profile::Feed | Profile::Deathstar) {
            return Err(Exit::usage(
                "Mastodon's API has no stories, keys and drawings: --api mastodon works with --profile feed and \
                 --profile deathstar",
            ));
        }
        Ok(())
    }

    /// Selects the components for the profile and its options.
    pub(super) fn parts(&self) -> anyhow::Result<Parts> {
        self.check()?;
        let mut parts = Parts::default();
        match self.profile {
            Profile::Feed => {
                let is_heavy = matches!(self.load, Some(Busy::Heavy));
                parts.feed = Some(if is_heavy { Load::Heavy } else { Load::Light });
            }
            Profile::Deathstar => parts.feed = Some(Load::Deathstar),
            Profile::Feeds => {}
            Profile::Stories => {
                parts.stories = Some(StoryLoad {
                    friends: self.friends.unwrap_or(10),
                    stories: self.stories.unwrap_or(10),
                    life_s: self.life.unwrap_or(300),
                    homes_per_second: self.home_reads.unwrap_or(self.people.users.div_ceil(20)),
                });
            }
            Profile::Recognize => {
                let digits = knn::digits();
                let references: Arc<_> =
                    digits.iter().map(|(_, _, bits)| bits.to_bytes()).collect();
                parts.drawings = Some(Drawings { references, per_second: 100 });
            }
            Profile::Buckets => {
                let usual = KeyLoad::default();
                parts.keys = Some(KeyLoad {
                    ycsb: self.ycsb.map_or(usual.ycsb, Letter::workload),
                    records: self.records.unwrap_or(usual.records),
                    value_bytes: self.value_bytes.unwrap_or(usual.value_bytes),
                });
            }
        }
        Ok(parts)
    }

    pub(super) fn options(
        &self,
        parts: Parts,
        target: Target,
        key: Option<String>,
        api: ApiOptions,
    ) -> anyhow::Result<SimulateOptions> {
        Ok(SimulateOptions {
            target,
            api,
            key,
            making: self.people.making()?,
            feed: parts.feed,
            stories: parts.stories,
            drawings: parts.drawings,
            keys: parts.keys,
            graph: self.people.graph.clone(),
            loaded: self.loaded,
        })
    }
}

impl Letter {
    fn workload(self) -> Ycsb {
        match self {
            Letter::A => Ycsb::A,
            Letter::B => Ycsb::B,
            Letter::C => Ycsb::C,
            Letter::D => Ycsb::D,
            Letter::E => Ycsb::E,
            Letter::F => Ycsb::F,
        }
    }
}
