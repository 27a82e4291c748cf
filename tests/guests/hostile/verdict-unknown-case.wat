;; Answers with a case that no verdict has.
;; fails: trap
;; says: discriminant
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (return (i32.const 256))))
  (global.get $forward))
(data (i32.const 256) "\09\00\00\00")
