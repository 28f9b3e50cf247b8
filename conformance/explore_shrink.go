package conformance

import (
	"context"
	"slices"
)

// shorten returns a shortest failed attempt, starting from a: if any one of its parts is left out, its sequence does not fail in tries plays (two at
// least where requests meet). It stops early at shrinksMax shorter sequences, at pursuitMax requests, and when ctx ends. A fault with the relation
// "amount", another number, explains those that it covers, and so may stand for them. The first shorter sequence that fails alike is taken, and
// shortened in turn.
func (s *search) shorten(ctx context.Context, a *attempt, tries int) *attempt {
	best, shrinks, most := a, 0, s.spent.Load()+pursuitMax
	for again := true; again; {
		again = false
		for _, shorter := range best.shorter(s.related["amount"].covers) {
			if shrinks++; shrinks > shrinksMax || s.spent.Load() > most || ctx.Err() != nil {
				return best
			}
			next, _ := s.again(ctx, shorter, max(tries, 1+count(shorter.racy())))
			if next != nil && sameHarm(next, best) {
				best, again = next, true
				break
			}
		}
	}
	return best
}

// sameHarm reports whether two attempts at a sequence fail alike, with the same verdict and level: then the shorter one stands
// for both.
func sameHarm(a, b *attempt) bool {
	return a.x.worstMiss.verdict == b.x.worstMiss.verdict && a.x.worstMiss.level == b.x.worstMiss.level
}

// racy reports whether requests of the sequence are at work at the same time, so that a failure may need luck, and one play without it says little.
func (s *sequence) racy() bool {
	return slices.ContainsFunc(s.acts, func(a move) bool { return a.beside || a.copies > 1 })
}

// shorter lists copies of s with one part less: first without many acts, then without one act, then with plainer acts. amount lists the relations
// (kinds of differences) that "amount" covers and may replace. The first act of a sequence is never beside another.
func (s *sequence) shorter(amount []string) []*sequence {
	var all []*sequence
	less := func(change func(*sequence)) {
		dup := s.clone()
		change(dup)
		all = append(all, dup)
	}
	for size := len(s.acts) / 2; size > 1; size /= 2 { // many at once, while there are many
		for from := len(s.acts) - size; from >= 0; from -= size {
			less(func(dup *sequence) {
				dup.acts = slices.Delete(dup.acts, from, from+size)
				dup.acts[0].beside = false
			})
		}
	}
	for i := len(s.acts) - 1; i >= 0 && len(s.acts) > 1; i-- {
		less(func(dup *sequence) {
			dup.acts = slices.Delete(dup.acts, i, i+1)
			dup.acts[0].beside = false
		})
	}
	if s.fails != "" {
		less(func(dup *sequence) { dup.fails = "" })
	}
	if s.size != "" {
		less(func(dup *sequence) { dup.size = "" })
	}
	if s.slow {
		less(func(dup *sequence) { dup.slow = false })
	}
	for i := range s.acts {
		all = append(all, s.plainer(i, amount)...)
	}
	return all
}

// plainer returns copies of the sequence in which one property of the act at an index is taken out or made smaller. The search tries them to find the
// shortest sequence that still fails. amount lists the relations (kinds of differences) for which "amount", another number, may stand.
func (s *sequence) plainer(at int, amount []string) []*sequence {
	var all []*sequence
	less := func(applies bool, change func(*move)) {
		if applies {
			dup := s.clone()
			change(&dup.acts[at])
			all = append(all, dup)
		}
	}
	a := s.acts[at]
	less(a.beside, func(a *move) { a.beside = false })
	less(a.copies > 1, func(a *move) { a.copies = 0 })
	less(a.copies > 2, func(a *move) { a.copies = 2 })
	less(a.pause, func(a *move) { a.pause = false })
	less(a.failing, func(a *move) { a.failing = false })
	less(a.others > 0, func(a *move) { a.others = 0 })
	less(a.others > 1, func(a *move) { a.others /= 2 })
	less(a.others > 1, func(a *move) { a.others-- })
	less(a.ends != "", func(a *move) { a.ends = "" })
	less(a.change != "", func(a *move) { a.change = "" })
	less(slices.Contains(amount, a.change), func(a *move) { a.change = "amount" })
	for i := range a.forms {
		less(true, func(a *move) { a.forms = slices.Delete(a.forms, i, i+1) })
	}
	return all
}
