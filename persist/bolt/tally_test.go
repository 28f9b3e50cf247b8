package bolt

import (
	"fmt"
	"math"
	"testing"
)

// TestReasonsPastTheLastNumberShareIt: a journal with more reasons than a byte has numbers counts the rest as one.
func TestReasonsPastTheLastNumberShareIt(t *testing.T) {
	counted := newTally()
	taken := map[uint8]int{}
	for i := range 300 {
		taken[counted.number(fmt.Appendf(nil, "reason %d", i))]++
	}
	if taken[0] != 0 || taken[1] != 1 || taken[math.MaxUint8-1] != 1 || taken[math.MaxUint8] != 300-254 {
		t.Errorf("reasons by number: %v; want none at 0, one at each from 1 to 254, the rest at 255", taken)
	}
	if last := counted.reasons[math.MaxUint8]; last != otherReasons || len(counted.reasons) != math.MaxUint8+1 {
		t.Errorf("the last of %d reasons is %q, want %q", len(counted.reasons), last, otherReasons)
	}
}
