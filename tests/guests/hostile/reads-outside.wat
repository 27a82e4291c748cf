;; Reads outside its memory.
;; fails: trap
;; says: out of bounds memory access
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (drop (i32.load (i32.const -8)))))
  (global.get $forward))
