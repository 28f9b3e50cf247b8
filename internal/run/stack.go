package run

// roomOfOperation is the stack, in bytes, needed by an operation.
const roomOfOperation = 20 << 10

// growStack gives a new goroutine the stack of an operation at once. A stack growing in steps is copied at each step. That costs a tenth
// of the operation. growStack is called before anything else is on the stack.
//
//go:noinline
func growStack() {
	var room [roomOfOperation]byte
	touch(&room)
}

// touch writes one byte of the room, so that the compiler does not leave it out as unused.
//
//go:noinline
func touch(room *[roomOfOperation]byte) { room[0] = 1 }
