;; Answers its start outside its memory.
;; fails: start
;; says: out of bounds
(func $start (type $start)
  (i32.const 0x7ffffffc))
