// What BullMQ does on a server: `node bullmq.js redis://HOST:PORT [MESSAGES] [ROUND]` prints one line
// of JSON for each measurement, like rust/src/main.rs.
import { Queue, Worker } from 'bullmq';
import IORedis from 'ioredis';

const [url, count = '20000', round = '0'] = process.argv.slice(2);
if (!url) {
  console.error('usage: node bullmq.js redis://HOST:PORT [MESSAGES] [ROUND]');
  process.exit(2);
}
const messages = Number(count);
const data = 'x'.repeat(100);
const connect = () => new IORedis(url, { maxRetriesPerRequest: null });
const report = (what, value) =>
  console.log(JSON.stringify({ who: 'bullmq', round: Number(round), what, value }));
const options = { removeOnComplete: true, removeOnFail: true };

const queue = new Queue('compare', { connection: connect(), defaultJobOptions: options });
await queue.obliterate({ force: true });

let begin = process.hrtime.bigint();
const seconds = () => Number(process.hrtime.bigint() - begin) / 1e9;
for (let sent = 0; sent < messages; sent += 1000) {
  const some = Math.min(1000, messages - sent);
  await queue.addBulk(Array.from({ length: some }, () => ({ name: 'job', data })));
}
report('publish', messages / seconds());

// A hundred at a time, the handler does nothing: its fastest way.
begin = process.hrtime.bigint();
await new Promise((resolve, reject) => {
  let done = 0;
  const worker = new Worker('compare', async () => {}, { connection: connect(), concurrency: 100 });
  worker.on('error', reject);
  worker.on('completed', () => {
    done += 1;
    if (done === messages) {
      report('receive+ack', messages / seconds());
      worker.close().then(resolve, reject);
    }
  });
});

// From just before the publish to the handler of an idle worker.
let arrived;
const worker = new Worker('compare', async () => arrived(), { connection: connect() });
await worker.waitUntilReady();
const latencies = [];
for (let sample = 0; sample < 500; sample += 1) {
  await new Promise((resolve) => setTimeout(resolve, 5));
  begin = process.hrtime.bigint();
  const at = new Promise((resolve) => (arrived = resolve));
  await queue.add('job', data);
  await at;
  latencies.push(seconds() * 1000);
}
latencies.sort((a, b) => a - b);
report('latency p50 ms', latencies[latencies.length >> 1]);
await worker.close();
await queue.obliterate({ force: true });
process.exit(0);
