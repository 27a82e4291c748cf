;; Refuses its configuration, with control characters in the reason.
;; fails: start
;; says: refused to start: no\u{1b}
(func $start (type $start)
  (i32.const 256))
(data (i32.const 256) "\01\00\00\00\00\02\00\00\03\00\00\00")
(data (i32.const 512) "no\1b")
