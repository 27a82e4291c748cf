;; Routes by a list whose size overflows.
;; fails: trap
;; says: list
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (return (i32.const 256))))
  (global.get $forward))
(data (i32.const 256) "\02\00\00\00\00\00\00\00\ff\ff\ff\ff")
