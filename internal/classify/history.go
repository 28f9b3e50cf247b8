package classify

// History is what the attempts of one operation prove together, those of earlier processes included. Add takes
// the verdict on each attempt in turn. The zero value is an operation of which nothing was handed to the network.
// It belongs to one goroutine.
type History struct {
	inDoubt  bool
	standing Verdict // the latest final answer, refusal or mismatch, while nothing is in doubt
	stands   bool
}

// Doubt says that an earlier attempt, which this History has not seen, may have had an effect.
func (h *History) Doubt() { h.inDoubt, h.stands = true, false }

// InDoubt reports whether some attempt may have had an effect that no answer has settled.
func (h *History) InDoubt() bool { return h.inDoubt }

// Add takes the verdict on the latest attempt, which for an answer was made with InDoubt, and returns what is
// known of the operation now. kept reports that the answer to an earlier attempt still counts, and not this one:
//
//   - In doubt, an attempt that was not sent leaves the outcome unknown.
//   - After a final answer that the server allowed to try again, an attempt that was not sent or that the server
//     refused changes nothing; another final answer replaces it; anything else makes the outcome unknown.
//   - After a refusal, an attempt that was not sent leaves it refused: the refused one was sent.
func (h *History) Add(v Verdict) (known Verdict, kept bool) {
	switch v.Kind {
	case KindNotSent:
		return h.addNotSent(v)
	case KindRefused:
		if h.stands && h.standing.Kind == KindFinal {
			return h.keep(v.Again), true
		}
		h.stand(v)
	case KindFinal:
		h.stand(v)
		h.inDoubt = false
	case KindMismatch:
		if h.stands && h.standing.Kind == KindFinal {
			v.Hold = true
			h.Doubt()
		} else if !h.inDoubt {
			h.stand(v)
		}
	default:
		h.Doubt()
	}
	return v, false
}

// addNotSent is Add for an attempt that was not sent: it says nothing of those that were.
func (h *History) addNotSent(v Verdict) (known Verdict, kept bool) {
	switch {
	case h.inDoubt:
		return Verdict{Kind: KindUnknown, Again: v.Again}, false
	case h.stands:
		return h.keep(v.Again), true
	}
	return v, false
}

// stand makes v the verdict that counts until a later attempt says more.
func (h *History) stand(v Verdict) { h.standing, h.stands = v, true }

// keep is the standing verdict; whether another attempt may help depends on the latest one.
func (h *History) keep(again bool) Verdict {
	h.standing.Again = again
	return h.standing
}
