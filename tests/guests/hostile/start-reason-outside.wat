;; Refuses, with a reason that lies outside its memory.
;; fails: start
;; says: out of bounds
(func $start (type $start)
  (i32.const 256))
(data (i32.const 256) "\01\00\00\00\fa\ff\00\00\64\00\00\00")
