;; Answers outside its memory.
;; fails: trap
;; says: out of bounds
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (return (i32.const 0x7ffffffc))))
  (global.get $forward))
