package place

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// VisitJournal is a journal file held only for the length of each call. So several send commands and readers of the journal do not wait
// for each other's requests. While a request is under way its operation has a lease in the file (the client takes leases on every
// journal with the methods of persist.Claimer).
//
// A dead process's lease must not stop the next send for minutes. So a process keeps a lock on a file beside the journal, named by the
// lease's owner, for as long as it lives. A lease without such a lock counts as none.
type VisitJournal struct {
	persist.Attachment
	Path string
	mine *ownerLock // made by the first Begin or Update with an owner
}

// VisitLease is longer than most sends. Their leases are not renewed in the file. A longer send is seen by its lock.
const VisitLease = 15 * time.Minute

// VisitWait is how long one call waits for others' calls.
const VisitWait = 10 * time.Second

// look opens the journal's file for reading, calls work with it, and closes it. It waits a while if another process has the file.
func look[T any](j *VisitJournal, work func(persist.Journal) (T, error)) (T, error) {
	return open(j, bolt.Options{LockWait: VisitWait, ReadOnly: true}, work)
}

// visit opens the journal's file for writing, calls work with it, and closes it. It waits a while if another process has the file.
func visit[T any](j *VisitJournal, work func(persist.Journal) (T, error)) (T, error) {
	return open(j, bolt.Options{LockWait: VisitWait}, work)
}

// open opens the journal's file, calls work with it, and closes it.
func open[T any](j *VisitJournal, opts bolt.Options, work func(persist.Journal) (T, error)) (T, error) {
	var none T
	file, err := bolt.Open(j.Path, opts)
	if err != nil {
		return none, err
	}
	result, err := work(file)
	return result, errors.Join(err, file.Close())
}

// own makes and locks the file that shows that this process lives, before the first lease (a claim to send an operation) is written in its name. Other
// processes respect the lease as long as that lock is held. Without a lease in the record, or if the file is made already, it does nothing.
func (j *VisitJournal) own(rec *persist.Record) error {
	if rec.LeaseOwner == "" || j.mine != nil {
		return nil
	}
	var err error
	j.mine, err = lockOwnerFile(j.Path, rec.LeaseOwner)
	return err
}

// living returns a record whose lease (the claim of a process to send the operation) is corrected: that of another process lasts as long as that process lives,
// which its locked file shows.
func (j *VisitJournal) living(rec persist.Record) persist.Record {
	if j.mine == nil || rec.LeaseOwner != j.mine.owner {
		LeaseOfLiving(j.Path, &rec, time.Now())
	}
	return rec
}

// LeaseOfLiving corrects the lease (the claim of a process to send) in a record of a journal file. If its process has died, the lease is taken off. If nobody
// can tell, it stays as it is. If the process is seen alive, the lease lasts for VisitLease from now at least: a send may take longer than its first lease,
// and nobody renews a lease in the file.
func LeaseOfLiving(path string, rec *persist.Record, now time.Time) {
	if rec.LeaseOwner == "" {
		return
	}
	switch ownerLives(path, rec.LeaseOwner) {
	case ownerDead:
		rec.LeaseOwner, rec.LeaseUntil = "", time.Time{}
	case ownerAlive:
		if until := now.Add(VisitLease); until.After(rec.LeaseUntil) {
			rec.LeaseUntil = until
		}
	}
}

// life is the state of an owner's process, by its lock.
type life int

const (
	ownerUnseen life = iota // not known: the lease lasts until its recorded end
	ownerAlive
	ownerDead
)

type begun struct {
	rec     persist.Record
	created bool
}

// Begin implements persist.Journal. It opens the journal's file for this one call, so that other programs can use it between two calls. own shows first that
// this process lives, since rec may have a lease (a claim to send). The result is the record that is in the journal then, with its lease corrected (living),
// and whether this call made it.
func (j *VisitJournal) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	if err := j.own(&rec); err != nil {
		return persist.Record{}, false, err
	}
	b, err := visit(j, func(file persist.Journal) (begun, error) {
		standing, created, err := file.Begin(ctx, rec)
		return begun{standing, created}, err
	})
	return j.living(b.rec), b.created, err
}

// Update implements persist.Journal. It opens the journal's file for this one call, so that other programs can use it between two calls. own shows first that
// this process lives, since rec may have a lease (a claim to send).
func (j *VisitJournal) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := j.own(&rec); err != nil {
		return persist.Record{}, err
	}
	return visit(j, func(file persist.Journal) (persist.Record, error) { return file.Update(ctx, rec) })
}

// do opens the journal's file, calls work for a call that returns only an error, and closes the file.
func (j *VisitJournal) do(work func(persist.Journal) error) error {
	_, err := visit(j, func(file persist.Journal) (struct{}, error) { return struct{}{}, work(file) })
	return err
}

// Finish implements persist.Journal. It opens the journal's file for this one call; its closing makes the end durable before the return.
func (j *VisitJournal) Finish(ctx context.Context, rec persist.Record) error {
	return j.do(func(file persist.Journal) error { return file.Finish(ctx, rec) })
}

// Forget implements persist.Journal. It opens the journal's file for this one call, so that other programs can use it between two calls.
func (j *VisitJournal) Forget(ctx context.Context, rec persist.Record) error {
	return j.do(func(file persist.Journal) error { return file.Forget(ctx, rec) })
}

// Amend implements persist.Journal. It opens the journal's file for this one call, so that other programs can use it between two calls.
func (j *VisitJournal) Amend(ctx context.Context, rec persist.Record) (persist.Record, error) {
	return visit(j, func(file persist.Journal) (persist.Record, error) { return file.Amend(ctx, rec) })
}

// Assign implements persist.Journal. It opens the journal's file for this one call, so that other programs can use it between two calls.
func (j *VisitJournal) Assign(ctx context.Context, rec persist.Record, account string) (persist.Record, error) {
	return visit(j, func(file persist.Journal) (persist.Record, error) { return file.Assign(ctx, rec, account) })
}

// Secret implements persist.Journal. It opens the journal's file for this one call, to read.
func (j *VisitJournal) Secret(ctx context.Context) ([]byte, error) {
	return look(j, func(file persist.Journal) ([]byte, error) { return file.Secret(ctx) })
}

// Fact implements persist.Journal. It opens the journal's file for this one call; old is the value to be replaced, and value the new one; without it the call
// only reads.
func (j *VisitJournal) Fact(ctx context.Context, name string, old, value []byte) ([]byte, error) {
	calls := visit[[]byte]
	if value == nil {
		calls = look[[]byte]
	}
	return calls(j, func(file persist.Journal) ([]byte, error) { return file.Fact(ctx, name, old, value) })
}

// MarkReported implements persist.Journal. It opens the journal's file for this one call, so that other programs can use it between two calls.
func (j *VisitJournal) MarkReported(ctx context.Context, id persist.ID) error {
	return j.do(func(file persist.Journal) error { return file.MarkReported(ctx, id) })
}

// Get implements persist.Journal. It opens the journal's file for this one call, to read. The lease (claim to send) of another process in the record is corrected:
// it lasts as long as that process lives.
func (j *VisitJournal) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	rec, err := look(j, func(file persist.Journal) (persist.Record, error) { return file.Get(ctx, id) })
	return j.living(rec), err
}

// List implements persist.Journal. The file is open, and locked against other programs, while the caller ranges over the records.
func (j *VisitJournal) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		_, err := look(j, func(file persist.Journal) (struct{}, error) {
			for rec, err := range file.List(ctx, q) {
				if !yield(j.living(rec), err) {
					yield = nil // the caller has stopped, and takes no error either
					return struct{}{}, nil
				}
			}
			return struct{}{}, nil
		})
		if err != nil && yield != nil {
			yield(persist.Record{}, err)
		}
	}
}

// Sweep implements persist.Journal. It opens the journal's file for this one call, so that other programs can use it between two calls.
func (j *VisitJournal) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	return visit(j, func(file persist.Journal) (int, error) { return file.Sweep(ctx, l) })
}

// Claim implements persist.Claimer, and always fails: the command send resumes nothing, so it is never called. Its presence makes the client take leases, which keep
// other processes from sending the same operation.
func (j *VisitJournal) Claim(context.Context, persist.Query, string, time.Duration, int) ([]persist.Record, time.Time, error) {
	return nil, time.Time{}, errors.New("a visited journal claims nothing")
}

// Now implements persist.Claimer, by the machine's clock, which all processes on one file share. The time has no monotonic part (Round): a file has none
// either.
func (*VisitJournal) Now(context.Context) (time.Time, error) { return time.Now().Round(0), nil }

// Renew implements persist.Claimer. It writes nothing, and calls all leases renewed: nobody takes a lease while its owner lives.
func (*VisitJournal) Renew(_ context.Context, _ string, _ time.Duration, ids []persist.ID) ([]persist.ID, time.Time, error) {
	return ids, time.Now().Round(0), nil
}

// Flush implements persist.Journal. It has nothing to do: every call closes the file, and so makes all durable.
func (*VisitJournal) Flush(context.Context) error { return nil }

// Close implements persist.Journal. It removes the locked file that shows that this process lives; the journal's file is closed already.
func (j *VisitJournal) Close() error {
	if j.mine != nil {
		j.mine.release()
	}
	return nil
}
