;; Rejects with a reason that would fake lines in a log.
;; fails: reject
;; says: a\nfake\u{1b}[2
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (return (i32.const 256))))
  (global.get $forward))
(data (i32.const 256) "\04\00\00\00\00\02\00\00\09\00\00\00")
(data (i32.const 512) "a\0afake\1b[2")
