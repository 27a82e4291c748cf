;; Changes headers in a way that the contract does not have.
;; fails: trap
;; says: discriminant
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (return (i32.const 256))))
  (global.get $forward))
(data (i32.const 256) "\03\00\00\00\00\00\00\00\00\00\00\00\00\02\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
(data (i32.const 512) "\05\00\00\00")
