;; Calls itself without end as it starts.
;; fails: start
;; says: stack
(func $start (type $start)
  (call $deeper (i32.const 0)))
(func $deeper (param i32) (result i32)
  (i32.add (call $deeper (local.get 0)) (i32.const 1)))
