;; Logs at a level that the contract does not have.
;; fails: trap
;; says: discriminant
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (call $log (i32.const 9) (i32.const 512) (i32.const 1))))
  (global.get $forward))
