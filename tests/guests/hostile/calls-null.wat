;; Calls an empty element of a table.
;; fails: trap
;; says: uninitialized element
(table 4 funcref)
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (call_indirect (i32.const 1))))
  (global.get $forward))
