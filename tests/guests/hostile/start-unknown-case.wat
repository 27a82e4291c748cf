;; Answers its start with a case that no result has.
;; fails: start
;; says: discriminant
(func $start (type $start)
  (i32.const 256))
(data (i32.const 256) "\07\00\00\00")
