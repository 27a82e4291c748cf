;; Logs 10,000 lines for a message.
;; fails: nothing
(func $handle (type $handle)
  (if (call $is_bad (local.get 0))
    (then
      (local.set 5 (i32.const 10000))
      (loop $next
        (call $log (i32.const 4) (i32.const 16) (i32.const 100))
        (br_if $next (local.tee 5 (i32.sub (local.get 5) (i32.const 1)))))))
  (global.get $forward))
