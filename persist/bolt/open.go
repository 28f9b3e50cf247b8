package bolt

import (
	"errors"
	"fmt"
	"os"

	bbolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/oncehttp/oncehttp/persist"
)

func (j *Journal) openDB(opts Options) error {
	var file *os.File
	db, err := bbolt.Open(j.path, 0o600, &bbolt.Options{
		Timeout:        max(opts.LockWait, 1),
		NoSync:         true,
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
		OpenFile: func(name string, flag int, perm os.FileMode) (*os.File, error) {
			f, err := opts.OpenFile(name, flag, perm)
			file = f
			return f, err
		},
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return persist.ErrLocked
	case err != nil:
		return fmt.Errorf("%w: %w", persist.ErrCorrupt, err)
	}
	j.db, j.file = db, file
	j.sync = db.Sync
	if opts.Sync != nil {
		j.sync = func() error { return opts.Sync(file) }
	}
	j.pageSize = db.Info().PageSize
	if err := j.load(); err != nil {
		_ = db.Close()
		return err
	}
	return nil
}

func (j *Journal) closeDB() error { return j.db.Close() }

func (j *Journal) load() error {
	err := j.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketAbout, bucketIntents, bucketFates, bucketBodies} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketAbout).Put(keyFormat, []byte(formatVersion))
	})
	if err != nil {
		return err
	}
	if err := j.sync(); err != nil {
		return err
	}
	return j.db.View(func(tx *bbolt.Tx) error {
		if s, ok := decodeState(tx.Bucket(bucketAbout).Get(keyState)); ok {
			j.seq = s.lastSeq
		}
		err := tx.Bucket(bucketFates).ForEach(j.loadFate)
		if err != nil {
			return err
		}
		return tx.Bucket(bucketIntents).ForEach(j.loadIntent)
	})
}
