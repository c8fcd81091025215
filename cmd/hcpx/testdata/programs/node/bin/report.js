#!/usr/bin/env node
// Uses of Node that a sandbox likes to break: modes, times, workers, children, pipes, crypto, streams.
const fs = require('node:fs');
const path = require('node:path');
const os = require('node:os');
const zlib = require('node:zlib');
const crypto = require('node:crypto');
const { execFileSync } = require('node:child_process');
const { Worker, isMainThread, parentPort } = require('node:worker_threads');

async function main() {
  const report = {};
  fs.writeFileSync('data.txt', 'abc'.repeat(1000));
  fs.chmodSync('data.txt', 0o640);
  fs.utimesSync('data.txt', 1, 2);
  report.mode = (fs.statSync('data.txt').mode & 0o777).toString(8);
  report.time = fs.statSync('data.txt').mtimeMs;
  fs.cpSync('data.txt', path.join(os.tmpdir(), 'copy.txt'), { preserveTimestamps: true });
  report.copied = fs.readFileSync(path.join(os.tmpdir(), 'copy.txt')).length;
  await fs.promises.mkdir('deep/er', { recursive: true });
  await fs.promises.rename('data.txt', 'deep/er/data.txt');
  report.files = fs.readdirSync('.', { recursive: true }).sort();
  report.hash = crypto.createHash('sha256').update('abc').digest('hex').slice(0, 8);
  report.zip = zlib.gunzipSync(zlib.gzipSync('packed')).toString();
  report.child = execFileSync(process.execPath, ['-p', '6*7']).toString().trim();
  report.cat = execFileSync('cat', { input: 'through a pipe' }).toString();
  report.worker = await new Promise((resolve, reject) => {
    const w = new Worker(__filename);
    w.on('message', resolve);
    w.on('error', reject);
  });
  report.fetch = await fetch('http://127.0.0.1:9/').then(() => 'reached', (e) => e.message);
  fs.rmSync('deep', { recursive: true });
  console.log(JSON.stringify(report));
}

if (isMainThread) main();
else parentPort.postMessage('from a thread');
