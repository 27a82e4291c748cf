;; Routes by a list at an address that no list of routes can have.
;; fails: trap
;; says: aligned
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (return (i32.const 256))))
  (global.get $forward))
(data (i32.const 256) "\02\00\00\00\01\01\00\00\01\00\00\00")
