;; Calls itself without end.
;; fails: trap
;; says: stack
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (drop (call $deeper (i32.const 0)))))
  (global.get $forward))
(func $deeper (param i32) (result i32)
  (i32.add (call $deeper (local.get 0)) (i32.const 1)))
