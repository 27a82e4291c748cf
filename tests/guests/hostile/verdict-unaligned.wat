;; Answers at an address that no verdict can have.
;; fails: trap
;; says: aligned
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (return (i32.const 257))))
  (global.get $forward))
