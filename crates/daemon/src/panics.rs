//! Panics in tasks. Where panics unwind, the runtime drops the task, and the daemon would go on without it: it ends instead.

use std::any::Any;
use std::future::pending;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tokio::sync::watch;
use tracing::error;

/// The first panic in a daemon's tasks. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Panics(watch::Sender<Option<String>>);

impl Panics {
    /// `task`, with a panic in it logged and noted.
    pub async fn noted(self, task: impl Future<Output = ()>) {
        let Err(panic) = AssertUnwindSafe(task).catch_unwind().await else { return };
        let said = said(&*panic);
        error!("a task panicked: {said}");
        self.0.send_if_modified(|first| first.is_none() && first.replace(said).is_none());
    }

    /// Waits for a panic: what it said.
    pub async fn first(&self) -> String {
        let mut noted = self.0.subscribe();
        match noted.wait_for(Option::is_some).await.map(|said| said.clone()) {
            Ok(Some(said)) => said,
            _ => pending().await,
        }
    }
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> String {
    let said =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    said.unwrap_or("it did not say why").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_panic_is_told_to_all_who_wait_and_an_orderly_end_to_nobody() {
        let panics = Panics::default();
        let early = tokio::spawn({
            let panics = panics.clone();
            async move { panics.first().await }
        });
        tokio::spawn(panics.clone().noted(async {})).await.unwrap();
        assert!(panics.first().now_or_never().is_none());
        for word in ["one", "two"] {
            tokio::spawn(panics.clone().noted(async move { panic!("no {word}") })).await.unwrap();
        }
        assert_eq!((early.await.unwrap(), panics.first().await), ("no one".to_owned(), "no one".to_owned()));
    }
}
