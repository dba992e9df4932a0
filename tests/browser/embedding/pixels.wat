;; Of the pixels from $at to $end, 16 bytes a turn: if asked, exchanges the first and third byte of each; gives the bits that all had.
(module
  (import "e" "m" (memory 0))
  (func (export "f") (param $at i32) (param $end i32) (param $exchange i32) (result i32)
    (local $all v128) (local $four v128) (local $order v128)
    (local.set $all (v128.const i32x4 -1 -1 -1 -1))
    (local.set $order
      (select
        (v128.const i8x16 2 1 0 3 6 5 4 7 10 9 8 11 14 13 12 15)
        (v128.const i8x16 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
        (local.get $exchange)))
    (loop $turn
      (v128.store align=1
        (local.get $at)
        (i8x16.swizzle (local.tee $four (v128.load align=1 (local.get $at))) (local.get $order)))
      (local.set $all (v128.and (local.get $all) (local.get $four)))
      (br_if $turn (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $end))))
    (i32.and
      (i32.and
        (i32.and (i32x4.extract_lane 0 (local.get $all)) (i32x4.extract_lane 1 (local.get $all)))
        (i32x4.extract_lane 2 (local.get $all)))
      (i32x4.extract_lane 3 (local.get $all)))))
