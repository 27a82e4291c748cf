;; Traps.
;; fails: trap
;; says: unreachable
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (unreachable)))
  (global.get $forward))
