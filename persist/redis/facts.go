package redis

import (
	"context"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist"
)

// factField begins the name of a fact's field.
const factField = "fact:"

// Fact implements [persist.Journal]. It returns the value of a named fact (a small value beside the records), nil if there is none. If value is not nil and
// the present value is old, it writes value first. Facts are fields of the hash that describes the journal. Error: also persist.ErrGone if Redis was emptied.
func (j *Journal) Fact(ctx context.Context, name string, old, value []byte) (standing []byte, err error) {
	if err := persist.CheckFact(name, value); err != nil {
		return nil, err
	}
	if err := j.opened(); err != nil {
		return nil, err
	}
	if value == nil {
		err = j.read(ctx, func(ctx context.Context) error {
			standing, err = j.readFact(ctx, name)
			return err
		})
	} else {
		err = j.settle(ctx, func(ctx context.Context, _ bool) error {
			standing, err = j.writeFact(ctx, name, old, value)
			return err
		})
	}
	if goredis.HasErrorPrefix(err, "NOPERM") {
		err = fmt.Errorf("%w: %w", persist.ErrDenied, err)
	}
	return standing, err
}

// readFact reads a fact by a plain command, which users with the right to read only may use. nil means that there is no such fact. It compares the id of the
// journal: another one, or none, means that Redis was emptied.
func (j *Journal) readFact(ctx context.Context, name string) ([]byte, error) {
	values, err := j.client.HMGet(ctx, j.place, "id", factField+name).Result()
	if err != nil {
		return nil, err
	}
	if id, _ := values[0].(string); id != j.id {
		return nil, j.emptied()
	}
	return bytesOf(values[1]), nil
}

// writeFact makes one try to replace the old value of a fact, a small named value beside the records. It returns the value in the journal afterwards: another
// process's, if old was not the present one. An answer of another form says that the journal's id is not there: Redis was emptied.
func (j *Journal) writeFact(ctx context.Context, name string, old, value []byte) ([]byte, error) {
	word, rest, err := split(j.scripts.fact.Run(ctx, j.client, []string{j.place}, j.id, factField+name, old, value))
	if err != nil {
		return nil, err
	}
	if word != "fact" || len(rest) != 1 {
		return nil, j.emptied()
	}
	return bytesOf(rest[0]), nil
}

// emptied returns the error of a journal whose description (format, buckets, id and secret) is not in Redis any more: it matches persist.ErrGone.
func (j *Journal) emptied() error {
	return fmt.Errorf("%w: key %s was emptied since the journal was made; restore its append-only file, or use another prefix", persist.ErrGone, j.place)
}
