;; Refuses, with a reason that is no UTF-8.
;; fails: start
;; says: utf-8
(func $start (type $start)
  (i32.const 256))
(data (i32.const 256) "\01\00\00\00\00\02\00\00\02\00\00\00")
(data (i32.const 512) "\ff\fe")
