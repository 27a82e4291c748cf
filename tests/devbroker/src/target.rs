//! Which server a test runs against: a dev broker, a real server that is started for it, or one that runs already.
