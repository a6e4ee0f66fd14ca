import express from 'express';

import { weir } from '../dist/esm/index.js';

const app = express();
app.use(weir({ limit: '50/h', deadline: 5000, onFailure: 'closed' }));
app.get('/', (req, res) => res.send(String(process.pid)));
// Each on a port of its own, so that the test chooses who is asked.
const server = app.listen({ port: 0, host: '127.0.0.1', exclusive: true }, () => {
  process.send(server.address().port);
});
