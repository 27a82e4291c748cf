;; Asks for inputs that the contract does not have.
;; fails: nothing
(func $start (type $start)
  (i32.const 256))
(data (i32.const 256) "\00\00\00\00\ff")
