package classify

// History joins the verdicts on all attempts of one operation, also those of earlier processes. Call Add with the
// verdict on each attempt, in order. The zero value is an operation of which nothing was handed to the network. Only
// one goroutine may use it.
type History struct {
	inDoubt bool
	latest  Verdict // the latest final answer, refusal or mismatch
	counts  bool    // latest is set, and no attempt after it put the operation in doubt
}

// Doubt notes an earlier attempt, unseen by this History, with a possible effect.
func (h *History) Doubt() { h.inDoubt, h.counts = true, false }

// Refused notes earlier attempts, unseen by this History: they were sent, and the server refused the last of them.
func (h *History) Refused() { h.setLatest(Verdict{Kind: KindRefused}) }

// InDoubt reports whether some attempt may have had an effect not settled by any answer.
func (h *History) InDoubt() bool { return h.inDoubt }

// Add takes the verdict on the latest attempt, and returns the verdict on the operation now. The verdict on an answer
// must be made with InDoubt. kept is true if the answer to an earlier attempt still counts, and not this one:
//
//   - In doubt, an unsent attempt leaves the outcome unknown.
//   - After a final answer that the server allowed to try again, an unsent or refused attempt changes nothing. Another
//     final answer replaces it. Anything else makes the outcome unknown.
//   - After a refusal, an unsent attempt leaves it refused: the refused one was sent.
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

// addNotSent adds an attempt that certainly was not sent: it says nothing of the sent ones. known is the verdict on the whole operation. kept is true
// if that is the verdict of an earlier answer.
func (h *History) addNotSent(v Verdict) (known Verdict, kept bool) {
	switch {
	case h.inDoubt:
		return Verdict{Kind: KindUnknown, Again: v.Again}, false
	case h.counts:
		return h.keep(v.Again), true
	}
	return v, false
}

// setLatest makes v the verdict on all attempts so far, until a later attempt says more.
func (h *History) setLatest(v Verdict) { h.latest, h.counts = v, true }

// keep returns the verdict that counts so far, with another Again: whether one more attempt may follow is said by the latest attempt (again).
func (h *History) keep(again bool) Verdict {
	h.latest.Again = again
	return h.latest
}
