;; Calls a function through a table as another type.
;; fails: trap
;; says: indirect call type mismatch
(table funcref (elem $is_bad))
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (call_indirect (i32.const 0))))
  (global.get $forward))
