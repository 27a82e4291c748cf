;; Traps after the verdict, when it may free memory.
;; fails: trap
;; says: unreachable
(global $after_bad (mut i32) (i32.const 0))
(func $handle (type $handle)
  (global.set $after_bad (call $is_bad (local.get 0)))
  (global.get $forward))
(func (export "cabi_post_sluice:guest/message-handler@0.1.1#handle") (param i32)
  (if (global.get $after_bad) (then (unreachable))))
