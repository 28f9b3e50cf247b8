package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

// flat holds fields of a drive for a test, all at one level.
type flat struct {
	op          Op
	given       Given
	step        Step
	after       Step
	write       Writing
	history     classify.History
	doubtBefore bool
	proof       Proof
	stop        Stop
	limited     bool
	looked      bool
	answer      Answer
	attempts    int
	sends       int
	reached     bool
	unreached   bool
	next        time.Time
	hold        persist.HoldReason
}

// drive returns the drive with these fields.
func (f flat) drive() (d Drive) {
	d.op, d.given, d.step, d.after, d.write = f.op, f.given, f.step, f.after, f.write
	d.history, d.doubtBefore, d.proof, d.stop, d.limited = f.history, f.doubtBefore, f.proof, f.stop, f.limited
	d.looked, d.answer, d.attempts, d.sends, d.reached = f.looked, f.answer, f.attempts, f.sends, f.reached
	d.unreached, d.next, d.hold = f.unreached, f.next, f.hold
	return d
}
