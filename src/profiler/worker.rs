//! The profiler's own threads: what takes long or blocks runs there, never on a thread of the service.
//!
//! They are started once, before the first session, so that not even their birth shows up in a capture, and they are
//! quiet as long as they live.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;

use super::Error;
use crate::quiet;

type Job = Box<dyn FnOnce() + Send>;

/// A thread that does one job after the other. It ends when the last clone of its `Worker` is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Worker {
    jobs: mpsc::Sender<Job>,
}

const DIED: Error = Error::Internal("a job panicked; see the panic's message");

impl Worker {
    pub(crate) fn spawn(name: &str) -> io::Result<Worker> {
        let (jobs, queue) = mpsc::channel::<Job>();
        thread::Builder::new().name(name.into()).spawn(move || {
            quiet::for_good();
            for job in queue {
                // A job that panics drops the sender of its answer: whoever waits learns of it.
                let _ = catch_unwind(AssertUnwindSafe(job));
            }
        })?;
        Ok(Worker { jobs })
    }

    /// Puts a job into the queue.
    pub(crate) fn submit(&self, job: impl FnOnce() + Send + 'static) {
        let _quiet = quiet::enter();
        // The thread lives as long as `self`; were it gone, the job's answer would be the dropped sender.
        let _ = self.jobs.send(Box::new(job));
    }

    /// Does a job and waits for its answer, blocking. Must not be called from the worker's own jobs.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let _quiet = quiet::enter();
        let (answer, answered) = mpsc::channel();
        self.submit(move || {
            // Nobody waits any more: nobody needs the answer.
            let _ = answer.send(job());
        });
        answered.recv().map_err(|_| DIED)
    }

    /// Does a job and waits for its answer without blocking.
    #[cfg(feature = "http")]
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.ask(true, job).await
    }

    /// As [`call`](Self::call), for a job that changes nothing: it is left out if nobody waits for its answer any more.
    #[cfg(feature = "http")]
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.ask(false, job).await
    }

    #[cfg(feature = "http")]
    async fn ask<T: Send + 'static>(
        &self,
        in_any_case: bool,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        self.submit(move || {
            if in_any_case || !answer.is_closed() {
                let _ = answer.send(job());
            }
        });
        answered.await.map_err(|_| DIED)
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, Worker};

    #[test]
    fn jobs_are_done_in_the_order_they_were_put_in() {
        let worker = Worker::spawn("test").unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        for number in 0..100 {
            let tell = tell.clone();
            worker.submit(move || tell.send(number).unwrap());
        }
        assert_eq!(worker.run(|| 7).unwrap(), 7);
        assert!(told.try_iter().eq(0..100));
    }

    #[test]
    fn a_panic_is_an_error_and_the_next_job_is_done() {
        let worker = Worker::spawn("test").unwrap();
        let panicked = worker.run(|| panic!("on purpose"));
        assert!(matches!(panicked, Err::<(), _>(Error::Internal(_))));
        assert_eq!(worker.run(|| 1).unwrap(), 1);
    }
}
