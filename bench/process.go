package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/exec"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// roleVariable names a child's role, configVariable holds its configuration.
const (
	roleVariable   = "COLOPHON_BENCH_ROLE"
	configVariable = "COLOPHON_BENCH_CONFIG"
)

// process is a child: this very program in another role. Its socket is the
// parent's, so that a child that was killed and started again is found where it
// was, and who asks meanwhile waits, as for a sandbox that is being made.
type process struct {
	name    string
	address string
	socket  *os.File
	role    string
	config  string
	env     []string
	output  *os.File // what it writes to its standard output: a function's log

	mu    sync.Mutex // of the life that it has
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
	// spent is the processor time of earlier lives.
	spent time.Duration
	// mayEnd: its end is intended.
	mayEnd atomic.Bool
}

// startProcess starts a child in a role. Its environment is env alone.
func startProcess(name, role string, config any, env []string, output *os.File) (*process, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{
		name: name, address: l.Addr().String(), socket: socket, role: role, config: string(text), env: env, output: output,
	}
	if err := p.start(); err != nil {
		socket.Close()
		return nil, err
	}
	return p, nil
}

func (p *process) start() error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	cmd := exec.Command(program)
	cmd.Env = append([]string{roleVariable + "=" + p.role, configVariable + "=" + p.config}, p.env...)
	cmd.Stdout, cmd.Stderr = p.output, os.Stderr
	cmd.ExtraFiles = []*os.File{p.socket}
	cmd.SysProcAttr = endsWithParent()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	ended := make(chan struct{})
	started := make(chan error)
	go func() {
		goruntime.LockOSThread() // the kernel ends a child when the thread that started it ends
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is of no interest: it was killed, or alive() tells that it ended
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.cmd, p.stdin, p.ended = cmd, stdin, ended
	p.mayEnd.Store(false)
	return nil
}

// kill ends the child as a crash would.
func (p *process) kill() {
	p.mayEnd.Store(true)
	_ = p.cmd.Process.Kill() // it may be gone already
	<-p.ended
	if state := p.cmd.ProcessState; state != nil {
		p.spent += state.UserTime() + state.SystemTime()
	}
	p.stdin.Close()
}

// restart kills the child and starts it anew.
func (p *process) restart() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kill()
	return p.start()
}

func (p *process) stop() {
	p.kill()
	p.socket.Close()
}

// alive says whether the child ended without having been told to.
func (p *process) alive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ended:
		if !p.mayEnd.Load() {
			return fmt.Errorf("%s ended: %v", p.name, p.cmd.ProcessState)
		}
	default:
	}
	return nil
}

// usage is what a process has used since it was started, and what it holds now.
type usage struct {
	CPU      time.Duration
	Resident int64 // bytes
}

func (p *process) usage() usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := usageOf(p.cmd.Process.Pid)
	u.CPU += p.spent
	return u
}

// usageOf reads Linux's own books (proc(5)); elsewhere, and of a process that is
// gone, they are empty.
func usageOf(pid int) (u usage) {
	const ticksPerSecond = 100 // sysconf(_SC_CLK_TCK), 100 on every Linux that Go runs on
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 22 {
		return u
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	pages, _ := strconv.ParseInt(fields[21], 10, 64)
	return usage{
		CPU:      time.Duration(user+system) * time.Second / ticksPerSecond,
		Resident: pages * int64(os.Getpagesize()),
	}
}

// runRole is a child's main: what the role serves, on the parent's socket, until
// the parent is gone.
func runRole(role string) error {
	makeRole, ok := roles[role]
	if !ok {
		return fmt.Errorf("no role %q", role)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent does, however it does
		os.Exit(0)
	}()
	socket := os.NewFile(3, "socket")
	l, err := net.FileListener(socket)
	if err != nil {
		return err
	}
	socket.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.Handle("/debug/pprof/allocs", pprof.Handler("allocs"))
	mux.HandleFunc("/memory", func(w http.ResponseWriter, r *http.Request) {
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		writeJSON(w, memory{Allocations: m.Mallocs, Bytes: m.TotalAlloc, Collections: m.NumGC})
	})
	if err := makeRole([]byte(os.Getenv(configVariable)), mux); err != nil {
		return err
	}
	return http.Serve(l, mux)
}

// memory is what a Go process has allocated since it began.
type memory struct {
	Allocations, Bytes uint64
	Collections        uint32
}

// roles are what a child can be: each reads its configuration and adds to the mux
// what it serves.
var roles = map[string]func(config []byte, mux *http.ServeMux) error{
	"function": functionRole, "mappings": mappingsRole, "queues": queuesRole, "receiver": receiverRole,
	"clients": clientsRole, "bare": bareRole, "conflicts": conflictsRole,
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the parent that does not listen is gone
}

// ask asks a child; nil in and nil out mean nothing to say and nothing to hear.
func ask(client *http.Client, address, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	answer, err := client.Post("http://"+address+path, "application/json", strings.NewReader(string(body)))
	if err != nil {
		return fmt.Errorf("ask %s: %w", path, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 2000))
		return fmt.Errorf("ask %s: %s: %s", path, answer.Status, strings.TrimSpace(string(text)))
	}
	if out == nil {
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		return fmt.Errorf("ask %s: %w", path, err)
	}
	return nil
}

// patient waits for as long as a run takes.
var patient = &http.Client{}
