;; Never comes back when the host wants memory for the message.
;; fails: every timeout
;; says: longer than its limit of 500ms
(global $started (mut i32) (i32.const 0))
(func $start (type $start)
  (global.set $started (i32.const 1))
  (i32.const 16))
(func $realloc (type $realloc)
  (loop $for_ever (br_if $for_ever (global.get $started)))
  (i32.const 16384))
