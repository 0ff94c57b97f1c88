package filing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Runner runs the applications of automatic tasks.
type Runner interface {
	Has(workflow.ApplicationName) bool
	Start(j runner.Job, done func(runner.Result))
	Cancel(key string)
}

// First is a runner whose jobs have their files before they begin.
func (k *Desk) First(of Runner) Runner {
	return &filesFirst{Runner: of, filing: k, waiting: map[string]context.CancelFunc{}}
}

// filesFirst is a runner for jobs that read or write files: it has them come here before
// an application begins, which gets their paths, and keeps what the application made.
type filesFirst struct {
	Runner
	filing *Desk

	mu      sync.Mutex // guards waiting
	waiting map[string]context.CancelFunc
}

// Start implements Runner. A job that waits for a file is RUNNING, as its time-out counts.
func (r *filesFirst) Start(j runner.Job, done func(runner.Result)) {
	if r.filing.Files == nil || len(j.Files)+len(j.Makes) == 0 || runner.BuiltIn(j.Application) {
		r.Runner.Start(j, done)
		return
	}
	r.startWhenHere(j, done)
}

// startWhenHere starts a job once its files are here. It is apart from Start, whose other
// jobs are not to be kept for it.
func (r *filesFirst) startWhenHere(j runner.Job, done func(runner.Result)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[j.Key] != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.waiting[j.Key] = cancel
	j.Input = maps.Clone(j.Input)
	r.filing.Go(func() { r.prepare(ctx, j, done, 0) })
}

// Cancel implements Runner.
func (r *filesFirst) Cancel(key string) {
	r.mu.Lock()
	if cancel := r.waiting[key]; cancel != nil {
		cancel()
	}
	r.mu.Unlock()
	r.Runner.Cancel(key)
}

// prepare has the files of a job come here, from one on, and starts it. What waits for a file
// costs no goroutine: it is called again when that is here.
func (r *filesFirst) prepare(ctx context.Context, j runner.Job, done func(runner.Result), from int) {
	failed := func(err error) {
		res := runner.Result{Failed: true, Reason: err.Error(), Lost: errors.Is(err, files.ErrLost)}
		if ctx.Err() != nil || r.filing.IsStopping() {
			res = runner.Result{Cancelled: true, Reason: "cancelled"}
		}
		r.forget(j.Key)
		done(res)
	}
	for i := from; i < len(j.Files); i++ {
		name := j.Files[i]
		path, here, err := r.filing.bring(ctx, j, name, func(err error) {
			if err != nil {
				failed(err)
				return
			}
			r.prepare(ctx, j, done, i)
		})
		switch {
		case err != nil:
			failed(err)
			return
		case !here:
			return
		}
		j.Input[name] = path
	}
	var err error
	if j.Folder, err = r.filing.Files.NewFolder(); err != nil {
		failed(err)
		return
	}
	r.mu.Lock()
	delete(r.waiting, j.Key)
	stopped := ctx.Err() != nil
	if !stopped { // under the lock, so that Cancel finds the job here or there
		r.Runner.Start(j, func(res runner.Result) {
			if res, taken := r.keep(j, res); taken {
				done(res)
			}
		})
	}
	r.mu.Unlock()
	if stopped {
		_ = os.RemoveAll(j.Folder) // what stays is removed at the next start
		failed(ctx.Err())
	}
}

// forget ends a job's wait for files.
func (r *filesFirst) forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.waiting[key]; cancel != nil {
		cancel()
	}
	delete(r.waiting, key)
}

// keep takes in the files that an application made in its folder, and removes that. A worker that names a file which
// cannot be taken in is told so, and nothing else happens: it still has the job, and may answer again.
func (r *filesFirst) keep(j runner.Job, res runner.Result) (kept runner.Result, taken bool) {
	if answer := res.Answer; answer != nil { // a worker's, which may come again if this cannot be recorded
		res.Answer = func(err error) {
			if err == nil {
				_ = os.RemoveAll(j.Folder) // what stays is removed at the next start
			}
			answer(err)
		}
	} else {
		defer os.RemoveAll(j.Folder) // what stays is removed at the next start
	}
	if res.Failed || res.Cancelled {
		return res, true
	}
	outputs := maps.Clone(res.Outputs)
	for _, name := range j.Makes {
		made, given := outputs[name]
		if !given || made == nil {
			continue
		}
		value, err := r.filing.keepMade(j, fmt.Sprint(made))
		if r.filing.IsStopping() { // it says nothing about the task: the node runs it again
			return runner.Result{Cancelled: true, Reason: "the node is stopping"}, true
		}
		switch {
		case err != nil && res.Answer != nil:
			res.Answer(api.Errorf(api.Refused, "the result was not taken: output %s: %w", name, err).
				WithHint("the worker still has the job: %s and complete it again, fail it, or give it back", mendOutput(err)))
			return runner.Result{}, false
		case err != nil:
			return runner.Result{Failed: true, Reason: fmt.Sprintf("output %s: %v", name, err)}, true
		}
		outputs[name] = value
	}
	res.Outputs = outputs
	return res, true
}

// errNoFile is in errors that say that what a program named as a file is none.
var errNoFile = errors.New("there is no such file")

// noFile is such an error.
type noFile string

func (e noFile) Error() string { return string(e) }

func (e noFile) Is(target error) bool { return target == errNoFile }

// mendOutput says what to do so that a file can be kept that a program made.
func mendOutput(err error) string {
	if errors.Is(err, errNoFile) {
		return "put the file into that folder"
	}
	return "make room on the disk of the node's folder, or in limits.files (mutirao doctor says more),"
}

// keepMade keeps one file of a job's folder, durably, and returns the value for it.
func (k *Desk) keepMade(j runner.Job, name string) (string, error) {
	if rule := workflow.FileNameRule(name); rule != "" {
		return "", noFile(fmt.Sprintf("%q is no file in the folder that the application was given: want %s", name, rule))
	}
	path := filepath.Join(j.Folder, name)
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return "", noFile(fmt.Sprintf("there is no file %s in the folder that the application was given", name))
	case !info.Mode().IsRegular():
		return "", noFile(fmt.Sprintf("%s, in the folder that the application was given, is no plain file", name))
	}
	content, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer content.Close() // it was only read
	ctx, cancel := k.UntilStopped()
	defer cancel()
	now := k.Clock.Now().Wall
	f, err := k.Files.Put(ctx, name, content, now)
	if err != nil {
		return "", err
	}
	return f.String(), k.Files.Give(f, j.Instance, string(k.initiatorOf(j.Instance)), now)
}

// bring returns the path of a file that a job reads, if it is here; else it has it come, and then
// says how that ended.
func (k *Desk) bring(
	ctx context.Context, j runner.Job, item workflow.DataName, came func(error),
) (path string, here bool, err error) {
	f, err := workflow.ParseFile(fmt.Sprint(j.Input[item]))
	if err != nil {
		return "", false, err
	}
	id, err := workflow.ParseInstanceID(j.Instance)
	if err != nil {
		return "", false, err
	}
	w := k.Want(id, k.initiatorOf(j.Instance), item, f)
	w.Again, w.Urgent = true, j.Replaceable // a program gets its path, and reads it by itself
	here, err = k.Files.Seek(ctx, w, came)
	path, _ = k.Files.Path(f)
	return path, here, err
}

// initiatorOf is who began an instance, as files.Store counts.
func (k *Desk) initiatorOf(instance string) workflow.PartnerID {
	id, err := workflow.ParseInstanceID(instance)
	if err != nil {
		return ""
	}
	sum, _ := k.Index.Get(id)
	return k.initiator(sum.By)
}

// Replaceable reports whether an instance goes on without a task that fails. One that it would block waits
// for what it needs instead, for as long as that may come: waiting blocks no more, and ends by itself.
func Replaceable(t *workflow.Task) bool {
	return t.OnFailure == workflow.FailRelease || t.OnFailure == workflow.FailContingency
}

// FilesOf are the inputs of a job that are files, and the outputs of its task that are to be.
func FilesOf(
	def *workflow.Definition, t *workflow.Task, input map[workflow.DataName]workflow.Value,
) (in, out []workflow.DataName) {
	if !HasFiles(def) {
		return nil, nil
	}
	for _, d := range def.Data {
		if d.Type != workflow.TypeFile {
			continue
		}
		if input[d.Name] != nil {
			in = append(in, d.Name)
		}
		for _, name := range t.Out {
			if name == d.Name {
				out = append(out, name)
			}
		}
	}
	return in, out
}

var _ files.Instances = (*Desk)(nil)
