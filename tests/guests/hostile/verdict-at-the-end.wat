;; Answers at the last bytes of its memory, where a verdict does not fit.
;; fails: trap
;; says: out of bounds
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (return (i32.const 65532))))
  (global.get $forward))
