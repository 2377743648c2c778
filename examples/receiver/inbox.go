package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// announcement is what is kept of one.
type announcement struct {
	ID      string `json:"id"` // webhook-id: the same in each repeat
	Project string `json:"project"`
	Release int64  `json:"release"`
	Message string `json:"message,omitempty"`
	URL     string `json:"url,omitempty"`
}

// record is a line of the inbox's file. One of the two is set.
type record struct {
	Accepted *announcement `json:"accepted,omitempty"`
	Acted    string        `json:"acted,omitempty"` // an id
}

// What became of an announcement that is answered with 2xx.
const (
	taken  = "taken in"
	repeat = "a repeat: dropped"
	older  = "older than a release that was taken in: ignored"
)

// inbox is a file that grows by a line for each announcement that is accepted
// and for each that was acted on. A line is on the disk before anything follows
// from it, so whatever the file says after a crash is what was answered.
type inbox struct {
	broken chan struct{} // closed when the file cannot be written

	mu      sync.Mutex
	file    *os.File
	seen    map[string]bool         // ids, of all times
	newest  map[string]announcement // of each project, the highest release that was accepted
	acted   map[string]string       // of each project, the id that was acted on last
	failed  error
	arrived chan struct{} // holds one where something may wait to be acted on
}

// openInbox reads an inbox, or makes one. Only one process has it at a time.
func openInbox(path string) (*inbox, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the inbox: %w", err)
	}
	i := &inbox{
		broken: make(chan struct{}), file: file, seen: map[string]bool{}, newest: map[string]announcement{},
		acted: map[string]string{}, arrived: make(chan struct{}, 1),
	}
	if err := i.start(path); err != nil {
		file.Close()
		return nil, fmt.Errorf("open the inbox: %w", err)
	}
	return i, nil
}

func (i *inbox) start(path string) error {
	if err := lock(i.file); err != nil {
		return fmt.Errorf("another receiver has it: %w", err)
	}
	if err := i.read(); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path)) // a new file's name is on the disk only once its folder is
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// read reads the whole lines. What stands behind the last of them is of a write
// that a crash cut off: nobody was answered for it.
func (i *inbox) read() error {
	lines := bufio.NewReader(i.file)
	whole := int64(0)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		var r record
		if json.Unmarshal(line, &r) != nil || !i.apply(r) {
			return fmt.Errorf("line %d is damaged: nothing is guessed about it", number)
		}
		whole += int64(len(line))
	}
	if err := i.file.Truncate(whole); err != nil {
		return err
	}
	_, err := i.file.Seek(whole, io.SeekStart)
	return err
}

// apply takes a record that is on the disk into account.
func (i *inbox) apply(r record) bool {
	switch {
	case r.Accepted != nil:
		i.seen[r.Accepted.ID] = true
		i.newest[r.Accepted.Project] = *r.Accepted
		select {
		case i.arrived <- struct{}{}:
		default:
		}
		return true
	case r.Acted != "":
		for project, a := range i.newest {
			if a.ID == r.Acted {
				i.acted[project] = a.ID
			}
		}
		return true
	}
	return false
}

// write puts a record on the disk and takes it into account. After a failure
// nobody knows what the disk holds, so nothing is written any more.
func (i *inbox) write(r record) error {
	if i.failed != nil {
		return i.failed
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, err = i.file.Write(append(line, '\n'))
	}
	if err == nil {
		err = i.file.Sync()
	}
	if err != nil {
		i.failed = fmt.Errorf("write the inbox: %w", err)
		close(i.broken)
		return i.failed
	}
	i.apply(r)
	return nil
}

// accept keeps an announcement, if it is one to act on. A release lower than one
// that was accepted is ignored, however it came to arrive late: on a slow way, or
// because somebody forced it.
func (i *inbox) accept(a announcement) (what string, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.seen[a.ID]:
		return repeat, nil
	case a.Release < i.newest[a.Project].Release:
		return older, nil
	}
	return taken, i.write(record{Accepted: &a})
}

// next is an announcement that waits to be acted on: a project's newest.
func (i *inbox) next() (announcement, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for project, a := range i.newest {
		if i.acted[project] != a.ID {
			return a, true
		}
	}
	return announcement{}, false
}

func (i *inbox) done(a announcement) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.write(record{Acted: a.ID})
}

// work acts on what was accepted, one after another, until the context ends or
// the inbox breaks. What fails is tried again, and given up for a newer release.
func (i *inbox) work(ctx context.Context, act func(context.Context, announcement) error) {
	const first, longest = time.Second, time.Minute
	pause := first
	for ctx.Err() == nil {
		a, ok := i.next()
		if !ok {
			select {
			case <-i.arrived:
				continue
			case <-ctx.Done():
				return
			}
		}
		if err := act(ctx, a); err != nil {
			log.Printf("release %d of project %s: %v; again in %v at the latest", a.Release, a.Project, err, pause)
			select {
			case <-time.After(pause):
			case <-i.arrived:
			case <-ctx.Done():
			}
			pause = min(2*pause, longest)
			continue
		}
		pause = first
		if i.done(a) != nil {
			return
		}
	}
}

func (i *inbox) close() {
	unlock(i.file)
	i.file.Close()
}
