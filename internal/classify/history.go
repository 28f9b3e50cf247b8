package classify

// History is what all attempts of one operation prove together, also those of earlier processes. Call Add with the
// verdict on each attempt, in order. The zero value is an operation of which nothing was handed to the network. Only
// one goroutine may use it.
type History struct {
	inDoubt bool
	latest  Verdict // the latest final answer, refusal or mismatch
	counts  bool    // latest is set, and no attempt after it put the operation in doubt
}

// Doubt says that an earlier attempt, which this History has not seen, may have had an effect.
func (h *History) Doubt() { h.inDoubt, h.counts = true, false }

// Refused says that earlier attempts, which this History has not seen, were sent, and that the server refused the last of
// them.
func (h *History) Refused() { h.setLatest(Verdict{Kind: KindRefused}) }

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
		if h.counts && h.latest.Kind == KindFinal {
			return h.keep(v.Again), true
		}
		h.setLatest(v)
	case KindFinal:
		h.setLatest(v)
		h.inDoubt = false
	case KindMismatch:
		if h.counts && h.latest.Kind == KindFinal {
			v.Hold = true
			h.Doubt()
		} else if !h.inDoubt {
			h.setLatest(v)
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
	case h.counts:
		return h.keep(v.Again), true
	}
	return v, false
}

// setLatest makes v the verdict that counts until a later attempt says more.
func (h *History) setLatest(v Verdict) { h.latest, h.counts = v, true }

// keep returns the verdict that counts, with Again as the last attempt has it.
func (h *History) keep(again bool) Verdict {
	h.latest.Again = again
	return h.latest
}
